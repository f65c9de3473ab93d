"""How model work runs fast: attention backends and fused operations, each with a plain reference.

Nothing is here yet: what the embedded model computes, torch already computes well on a CPU. A
kernel that comes here has a plain-torch reference of the same signature beside it, and one
parametrised test against that. This room imports no other.
"""

__all__: list[str] = []
