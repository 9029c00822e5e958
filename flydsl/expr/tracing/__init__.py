"""How a call becomes an operation: operands, the operation's place and line, and values whose trace has ended."""
