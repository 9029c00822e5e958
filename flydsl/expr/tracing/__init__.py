"""The way of a call to an operation: operands, the operation's place and line, and values whose trace has ended."""
