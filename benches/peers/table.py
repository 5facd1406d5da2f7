"""Markdown of the results: medians over rounds, in brackets the least and the most."""

import json
import statistics


def read(path):
    """Results, a line each; a last line that was cut short is left out."""
    records = []
    if path.exists():
        for line in path.read_text().splitlines():
            try:
                records.append(json.loads(line))
            except ValueError:
                continue
    return records


def number(value):
    """Three significant digits."""
    if value >= 99.5:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value >= 0.01 else f"{value:.1e}"


def spread(values):
    if not values:
        return "–"
    middle = number(statistics.median(values))
    return middle if len(values) == 1 else f"{middle} ({number(min(values))}–{number(max(values))})"


def latest(records):
    """Rows of the table: for each case the rounds of its latest session."""
    rows = {}
    for record in records:
        key = tuple(record["case"].values())
        if key not in rows or rows[key][0]["session"] != record["session"]:
            rows[key] = []
        rows[key].append(record)
    return rows.values()


def cells(rounds):
    """A row: times of both, ratio of times of the same round, evaluations and memory."""
    first = rounds[0]
    field = "ms_per_evaluation" if first["unit"] == "evaluation" else "ms_per_step"
    ours = [one["ours"][field] for one in rounds]
    peer = [one["peer"][field] for one in rounds if one["peer"]]
    ratios = [one["peer"][field] / one["ours"][field] for one in rounds if one["peer"]]
    papers = first["papers"]
    case = first["case"]
    sizes = [str(case["width"] or ""), str(case["rows"] or "")]
    out = [first["title"], *sizes, first["unit"], first["peer_name"] or "–"]
    out += [spread(peer), spread(ours), f"**{spread(ratios)}**" if ratios else "–"]
    for field in ("evaluations_per_step", "peak_mb"):
        both = [
            number(statistics.median(one[side][field] for one in rounds))
            if first[side] and field in first[side]
            else "–"
            for side in ("peer", "ours")
        ]
        out.append(" / ".join(both))
    earlier = f"{papers:,} ({number(papers / statistics.median(ours))} ×)" if papers else ""
    return [*out, earlier]


HEADINGS = [
    "case", "width", "rows", "ms per", "peer", "peer, ms", "reprior, ms", "peer / reprior",
    "evaluations a step, peer / reprior", "peak MB, peer / reprior",
    "published code, ms (measured earlier, not side by side)",
]  # fmt: skip


def markdown(records):
    lines = ["| " + " | ".join(HEADINGS) + " |", "|---" * len(HEADINGS) + "|"]
    notes = []
    for rounds in latest(records):
        lines.append("| " + " | ".join(cells(rounds)) + " |")
        notes += [facts(rounds)]
        parts = (rounds[0]["peer"] or {}).get("parts")
        if parts:
            names = rounds[0]["peer"]["parts"]
            each = (
                f"{name} {number(statistics.median(r['peer']['parts'][name] for r in rounds))} ms"
                for name in names
            )
            notes.append("ArviZ: " + ", ".join(each) + ".")
        if rounds[0]["unit"] == "effective draw":
            notes.append(effective(rounds))
    return "\n".join([*lines, "", *(line + "\n" for line in dict.fromkeys(notes))])


def effective(rounds):
    def of(side):
        per_second = statistics.median(1e3 / one[side]["ms_per_step"] for one in rounds)
        gradient = statistics.median(one[side]["ms_per_evaluation"] for one in rounds)
        return f"{number(per_second)} effective draws a second, {number(gradient)} ms a gradient"

    return f"hmc-infinite: peer {of('peer')}; reprior {of('ours')} (both with warm-up)."


def facts(rounds):
    machine = rounds[0]["machine"]
    versions = ", ".join(machine["versions"])
    data = "CIFAR-10" if rounds[0]["data"] == "folder" else "synthetic rows of CIFAR-10's shape"
    return (
        f"{rounds[0]['date']}; {machine['processor']}, {machine['cores']} cores; {versions}; "
        f"{data}; {rounds[0]['chains']} chains of reprior; "
        f"rounds: {len(rounds)} (medians, in brackets the least and the most)."
    )
