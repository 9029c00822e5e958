"""A GPU that is not there: programs that are written for torch on a GPU run as they are, on the simulator.

    flydsl.gpu.use("mi300x")  # or `with flydsl.gpu.pose("mi300x"):`, or `python -m flydsl.gpu mi300x script.py`
    x = torch.randn(1024, device="cuda")

From then on `torch.cuda.is_available()` is true, tensors on "cuda" are in host memory and say that they are on the GPU
(`tensor`), factories make them (`factories`), and torch and torch.cuda do with them what they do on that product
(`torch_module`, `cuda_module`, `graphs`, `profiler`), as Triton does (`of_triton`). Launches run on the simulator for
its architecture (`launches`) and advance a clock (`streams`), as torch's operators do (`operators`). Memory ends at the
product's size (`memory`). `posing` puts all that in place, and takes it back; nothing here is loaded unless it is asked
for.
"""

from typing import TYPE_CHECKING

from flydsl.system.lazy_names import lazy_names

if TYPE_CHECKING:
    from flydsl.gpu.posing import local, off, pose, posed, report, summary, use, watch
    from flydsl.gpu.profiler import Profile

__all__ = ["Profile", "local", "off", "pose", "posed", "report", "summary", "use", "watch"]

__getattr__ = lazy_names(
    __name__,
    {"flydsl.gpu.posing": "local off pose posed report summary use watch", "flydsl.gpu.profiler": "Profile"},
)
