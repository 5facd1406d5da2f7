"""What is compared: for each case a peer's command and reprior's flags."""

import dataclasses

NAMES = [
    "pcn", "pcn-full", "gradient", "elliptical", "nuts", "langevin", "pcnl", "deep", "feature",
    "table", "effective", "diagnostics",
]  # fmt: skip
# With a step of 0.1, 64 leapfrogs would be a whole turn of the prior, which
# NUTS takes for no U-turn.
BETA, NUTS_STEP, HMC_STEP, TABLE_STEP = 0.05, 0.07, 0.13, 0.02
# damping 0.01 and step 0.01 of langevin, β = 0.05 of pcnl: what a step costs does not depend on it
LANGEVIN = ["--step-size", 0.01]
# Released code of the wide-network experiments, milliseconds a step, 256 rows of CIFAR-10, a 2-core
# EPYC (Milan). It is not ours to ship: measured earlier, not beside reprior.
PAPERS = {
    ("pcn", 512): 57, ("pcn", 1024): 124, ("pcn", 2048): 376, ("pcn", 4096): 735,
    ("langevin", 512): 108, ("langevin", 1024): 265, ("langevin", 2048): 972,
    ("langevin", 4096): 3048,
    ("pcnl", 512): 192, ("pcnl", 1024): 498, ("pcnl", 2048): 1230, ("pcnl", 4096): 6535,
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Case:
    """One row of the table."""

    name: str
    title: str
    peer_name: str
    unit: str  # what milliseconds are of
    width: int = 0
    rows: int = 0
    depth: int = 1
    algorithm: str | None = None  # of peer.py
    peer_flags: tuple = ()
    our_flags: tuple = ()

    @property
    def papers(self):
        at = (self.name, self.width) if self.rows == 256 and self.depth == 1 else None
        return PAPERS.get(at)

    @property
    def key(self):
        return {name: getattr(self, name) for name in ("name", "width", "rows", "depth")}


def cases(names, widths, rows, chains_to_check=(4, 10_000, 1000)):
    """The cases of these names, `rows` being those in feature space."""
    cold = ("--warmup", 0, "--arrival", 0)
    warm = ("--warmup", 40, "--arrival", 20)
    pcn = ("--method", "pcn", "--step-size", BETA, *cold)
    warm_peer = ("--warm", 0.1)
    made = []

    def add(
        name, title, peer, unit, algorithm, peer_flags, our_flags, *, at=widths, n=(256,), depth=1
    ):
        if name in names:
            made.extend(
                Case(name, title, peer, unit, w, r, depth, algorithm, peer_flags, our_flags)
                for w in at
                for r in n
            )

    beta = ("--step-size", BETA)
    full = (*beta, "--inputs", "full")
    hmc = ("--method", "hmc-infinite", "--step-size", HMC_STEP, *cold)
    add("pcn", "pCN", "JAX", "step", "pcn", beta, pcn)
    add("pcn-full", "pCN", "JAX, inputs not reduced", "step", "pcn", full, pcn)
    add("gradient", "value and gradient", "JAX", "evaluation", "gradient", (), hmc)
    slices = ("--method", "elliptical", *warm)
    add("elliptical", "elliptical slice", "BlackJAX", "step", "elliptical", warm_peer, slices)
    step = ("--step-size", NUTS_STEP)
    add("nuts", "NUTS", "BlackJAX", "evaluation", "nuts", (*step, *warm_peer, "--chunk", 1),
        ("--method", "nuts", *step, "--warmup", 12, "--arrival", 6))  # fmt: skip
    add("langevin", "Langevin", "", "step", None, (), ("--method", "langevin", *LANGEVIN, *cold))
    add("pcnl", "pCNL", "", "step", None, (), ("--method", "pcnl", *beta, *cold))
    add("deep", "pCN, three layers", "JAX", "step", "pcn", beta, pcn, at=(1024,), depth=3)
    add("feature", "pCN, feature space", "JAX", "step", "pcn", beta, pcn, at=(512,), n=rows)
    small = ("--method", "hmc-infinite", "--step-size", TABLE_STEP, *cold)
    title = "value and gradient, eight inputs"
    add("table", title, "JAX", "evaluation", "gradient", (), small, at=(50,), n=(1000,))
    add("effective", "hmc-infinite", "JAX", "effective draw", None, (), (), at=(1024,))
    chains, draws, variables = chains_to_check
    title = f"bulk ESS, tail ESS, R-hat: {chains} × {draws:,} × {variables:,}"
    add("diagnostics", title, "ArviZ", "all three", None, (), chains_to_check, at=(0,), n=(0,))
    return made
