"""The replica planner written the slow and obvious way, to check the real one against.

Follows the description step by step with one dictionary per quantity and exact fractions; shares no code with the product.
"""

from fractions import Fraction
from math import ceil


def fnv1(text: str) -> int:
    value = 2166136261
    for byte in text.encode():
        value = (value * 16777619) % 2**32
        value = value ^ byte
    return value


def smallest(*numbers):
    return min(number for number in numbers if number is not None)


def desired_plan(clusters, minimum, maximum, weight, limited, estimated, total, key):
    """Returns plan, overflow and what found no home."""
    order = sorted(clusters, key=lambda name: (-weight[name], fnv1(name + key), name))
    plan = dict.fromkeys(clusters, 0)
    overflow = dict.fromkeys(clusters, 0)
    remaining = total

    for name in order:
        # Safer than the description: a minimum above a maximum gives way.
        wanted = smallest(minimum[name], remaining, maximum[name], limited.get(name))
        fits = smallest(wanted, estimated.get(name))
        overflow[name] = wanted - fits
        plan[name] = fits
        remaining -= fits

    active = order
    while remaining > 0 and sum(weight[name] for name in active) > 0:
        all_weights = sum(weight[name] for name in active)
        at_start = remaining
        full = set()
        grew = False
        for name in active:
            if remaining == 0:
                break
            share = ceil(Fraction(at_start * weight[name], all_weights))
            wanted = plan[name] + min(share, remaining)
            allowed = smallest(wanted, maximum.get(name), limited.get(name))
            fits = smallest(allowed, estimated.get(name))
            if fits < wanted:
                full.add(name)
            overflow[name] += allowed - fits
            grew = grew or fits > plan[name]
            remaining -= fits - plan[name]
            plan[name] = fits
        else:
            active = [name for name in active if name not in full]
            if not grew:
                break
            continue
        break
    return plan, {name: number for name, number in overflow.items() if number > 0}, remaining


def reference_plan(
    preferences,
    total,
    clusters,
    *,
    key,
    current,
    estimated_capacity,
    limited_capacity,
    avoid_disruption,
    keep_unschedulable,
):
    """`preferences` maps cluster (or `*`) to (minimum, maximum or None, weight). Returns (plan, overflow)."""
    chosen = {}
    for name in clusters:
        if name in preferences:
            chosen[name] = preferences[name]
        elif "*" in preferences:
            chosen[name] = preferences["*"]
    minimum = {name: stated[0] for name, stated in chosen.items()}
    maximum = {name: stated[1] for name, stated in chosen.items()}
    weight = {name: stated[2] for name, stated in chosen.items()}

    desired, overflow, homeless = desired_plan(
        chosen, minimum, maximum, weight, limited_capacity, estimated_capacity, total, key
    )
    if avoid_disruption and not keep_unschedulable:
        overflow = {name: min(number, homeless) for name, number in overflow.items() if min(number, homeless) > 0}
    if not avoid_disruption:
        return desired, overflow

    present = {
        name: smallest(current.get(name, 0), limited_capacity.get(name), estimated_capacity.get(name))
        for name in chosen
    }
    change = sum(desired.values()) - sum(present.values())
    if change == 0:
        return present, overflow
    if change < 0:
        # Safer than the description: what found no home in the desired plan stays where it is, unless that is beyond a bound.
        bounded = {name: smallest(present[name], maximum[name], limited_capacity.get(name)) for name in chosen}
        staying = min(total, sum(bounded.values()))
        if staying > sum(desired.values()) > 0:
            homeless = max(homeless - (staying - sum(desired.values())), 0)
            if not keep_unschedulable:
                overflow = {
                    name: min(number, homeless) for name, number in overflow.items() if min(number, homeless) > 0
                }
            present, change = bounded, staying - sum(bounded.values())
        above = [name for name in chosen if desired[name] < present[name]]
        moved, _, _ = desired_plan(
            above,
            dict.fromkeys(above, 0),
            {name: present[name] for name in above},
            {name: present[name] - desired[name] for name in above},
            {},
            {},
            -change,
            key,
        )
        return {name: present[name] - moved.get(name, 0) for name in chosen}, overflow
    below = [name for name in chosen if desired[name] > present[name]]
    moved, _, _ = desired_plan(
        below,
        dict.fromkeys(below, 0),
        {name: None if maximum[name] is None else maximum[name] - present[name] for name in below},
        {name: desired[name] - present[name] for name in below},
        {},
        {},
        change,
        key,
    )
    return {name: present[name] + moved.get(name, 0) for name in chosen}, overflow
