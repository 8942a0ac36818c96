"""Words of column names: kinds of signals, what was asked for, other signals, times; and units as words."""

from __future__ import annotations

POSITION, VELOCITY, ACCELERATION, REFERENCE, EFFORT = "q", "dq", "ddq", "q_ref", "tau"
RATES = (POSITION, VELOCITY, ACCELERATION)
JOINT_SIGNALS = (*RATES, REFERENCE, EFFORT)


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# Words that name a kind of signal, with the confidence that they mean it.
KINDS: dict[str, tuple[str, float]] = {
    **dict.fromkeys(_words("q qpos pos position positions angle angles"), (POSITION, 1.0)),
    **dict.fromkeys(_words("theta θ"), (POSITION, 0.75)),  # beside `q` it is that of the motor
    **dict.fromkeys(_words("ang phi th displacement enc encoder"), (POSITION, 0.9)),
    **dict.fromkeys(_words("dq qd qdot qvel vel velo velocity velocities speed speeds"), (VELOCITY, 1.0)),
    **dict.fromkeys(_words("omega dpos"), (VELOCITY, 0.9)),
    **dict.fromkeys(_words("dtheta v"), (VELOCITY, 0.75)),  # `v` beside `q`, as Drake has it
    **dict.fromkeys(_words("ddq qdd qddot qacc acceleration accelerations accel acc"), (ACCELERATION, 1.0)),
    **dict.fromkeys(_words("tau τ torque torques effort efforts eff trq"), (EFFORT, 1.0)),
    **dict.fromkeys(_words("force forces frc qfrc moment moments tq"), (EFFORT, 0.9)),
    **dict.fromkeys(_words("current currents curr cur"), (EFFORT, 0.65)),
    **dict.fromkeys(_words("ctrl control"), (EFFORT, 0.6)),  # of a motor; a servo gets positions
}
LOAD = "load"  # an effort, unless another word names a kind: `load_position` is one beyond the gear
LOAD_IS_EFFORT = 0.6
CURRENTS = frozenset(_words("current currents curr cur"))
ASKED = frozenset(
    _words(
        "target desired des command commanded cmd ref reference setpoint goal sp ipo planned computed action"
    )
)
DESIRED = "d"  # at the end: `q_d`, `tau_J_d`
CONTROL = frozenset(_words("ctrl control"))
ASKED_EFFORT = 0.6  # a commanded effort is not what the motor gave
SET = "set"  # before a kind word: `SetPos` of TwinCAT; alone it is a set of data
MODELLED = frozenset(_words("model g"))  # beside an effort word: `model_torque`, `tau_g`
# Efforts as a share of a rated value, or as a converter gave them: their scale is unknown.
SHARES = frozenset(_words("percent pct permille promille adc lsb"))
SHARE = 0.6
SIGNS = {"%": " percent ", "\u2030": " permille "}
# Signals of a kind that are not the measured one, or not of a joint.
OTHERS = frozenset(
    _words(
        "error err std sigma variance limit limits min max temp temperature voltage status mode ext external"
        " gravity friction coriolis residual disturbance feedforward ff bias passive constraint tcp tool ee"
        " eef cartesian cart flange ft wrench imu gyro gripper window count counts tick ticks increments"
        " diff difference deviation dev lag predicted modeled modelled fric grav gravcomp rate offset"
    )
)
COUNTED = frozenset(_words("count counts tick ticks increments"))
NEUTRAL = frozenset(
    _words(
        "joint joints j axis ax a state states robot arm motor actuator drive link actual act measured meas"
        " sensor value values data feedback fb real torso head leg controller"
    )
)
SETPOINTS = ("as", "pos")  # `ASPos` of KUKA RSI
CLOCKS = {"ipoc": "ms", "utime": "us"}  # of KUKA RSI and of LCM
TIME = frozenset(_words("t ts time times timestamp stamp timestamps clock elapsed duration seconds sec"))
AROUND_TIME = frozenset(
    _words(
        "header robot arm time stamp log ros system real sample rel relative controller joint joints state"
        " states sim simulation unix epoch utc wall abs absolute msg message host server received receive pc"
    )
)
SUFFIXES = {
    "deg": "deg", "degrees": "deg", "rad": "rad", "radians": "rad", "mrad": "mrad", "rev": "rev", "m": "m",
    "mm": "mm", "cm": "cm", "rad s": "rad/s", "rads": "rad/s", "radps": "rad/s", "deg s": "deg/s",
    "degs": "deg/s", "degps": "deg/s", "rpm": "rpm", "m s": "m/s", "mm s": "mm/s", "rad s 2": "rad/s^2",
    "deg s 2": "deg/s^2", "m s 2": "m/s^2", "nm": "Nm", "n m": "Nm", "m nm": "mNm", "mnm": "mNm", "n": "N",
    "a": "A", "amps": "A", "m a": "mA", "ma": "mA", "s": "s", "sec": "s", "seconds": "s", "ms": "ms",
    "us": "us", "ns": "ns", "nsec": "ns",
}  # fmt: skip
ANGLE, LENGTH = _words("rad mrad deg rev"), _words("m cm mm um in")
TORQUE, FORCE = _words("Nm mNm kNm Ncm Nmm kgfm kgfcm lbfft lbfin"), _words("N mN kN")
AMPERES = _words("A mA")
FITTING: dict[tuple[str, bool], tuple[str, ...]] = {
    (POSITION, True): ANGLE,
    (POSITION, False): LENGTH,
    (VELOCITY, True): _words("rad/s mrad/s deg/s rev/s rpm"),
    (VELOCITY, False): _words("m/s cm/s mm/s"),
    (ACCELERATION, True): _words("rad/s^2 deg/s^2"),
    (ACCELERATION, False): _words("m/s^2 cm/s^2 mm/s^2 g"),
    (EFFORT, True): (*TORQUE, *AMPERES),
    (EFFORT, False): (*FORCE, *AMPERES),
}
TIME_UNITS = _words("s ms us ns")
