"""A recorded log played back sample by sample: a box of 1 kg is put on the flange after two seconds.

    python examples/online_payload.py

On a robot, the loop below runs in the control cycle: `update` takes about 50 microseconds.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynid import (
    Frame,
    Online,
    Payload,
    demo_file,
    identify,
    load_robot,
    random_motion,
    read_demo,
    simulate_log,
)

RATE, STEP = 1000.0, 2000
robot = load_robot("ur5")
demo = read_demo(demo_file("ur5"), robot)
box = Payload("box", "wrist_3_link", Frame(np.eye(3), np.array([0.0, 0.0, 0.05])))
with_box = replace(robot, payloads={"box": box})
truth = {**demo.truth, "M_box": 1.0, **{f"{symbol}_box": 0.0 for symbol in ("MX", "MY", "MZ")}}
truth |= {f"{symbol}_box": 1e-3 for symbol in ("XX", "YY", "ZZ")}
truth |= {f"{symbol}_box": 0.0 for symbol in ("XY", "XZ", "YZ")}


def record(seed: int, duration: float, mounted: tuple[str, ...] = ()):
    """A simulated log of a random motion."""
    return simulate_log(
        with_box,
        truth,
        random_motion(robot, seed=seed),
        rate=RATE,
        duration=duration,
        encoder_resolution=demo.encoder,
        torque_sigma=demo.torque_sigma,
        seed=seed,
        payloads=mounted,
    )


result = identify("ur5", record(1, 10.0), auto="off")
empty, full = record(2, 4.0), record(2, 4.0, ("box",))
online = Online(result, rate=RATE)
for k in range(len(empty.t)):
    log = empty if k < STEP else full
    online.update(log.q[k], log.tau[k])
    if (k + 1) % 500 == 0:
        load = online.payload
        print(f"{online.t:4.1f} s   payload {load.mass:6.3f} +- {1.96 * load.mass_sigma:.3f} kg")  # 95 %
print(f"change found at {online.changes[0]:.2f} s, centre of mass {online.payload.com.round(4)} m")
