"""PyBullet's own locomotion environments, for recording and timing beside ours.

Needs pybullet==3.2.7, numpy<2 and setuptools<70, which `scripts/setup.sh oracle` lays down in `.deps/oracle`, and Python before
3.12, whose `sum` of floats still adds in order. `gym` is not needed: `pybullet_envs` uses little of it, and
that little stands below (the last `gym` it works with no longer installs on current Pythons).
"""

import sys
import types

import numpy as np

ENVIRONMENTS = {
    "hopper": "HopperBulletEnv",
    "walker2d": "Walker2DBulletEnv",
    "half-cheetah": "HalfCheetahBulletEnv",
    "ant": "AntBulletEnv",
}


def _stand_in_for_gym():
    class Box:
        def __init__(self, low, high, dtype):
            self.low, self.high, self.shape, self.dtype = low, high, low.shape, dtype

    def module(name, **members):
        made = types.ModuleType(name)
        vars(made).update(members)
        sys.modules[name] = made
        return made

    seeding = module("gym.utils.seeding", np_random=lambda seed: (np.random.RandomState(seed), seed))
    registration = module(
        "gym.envs.registration",
        registry=types.SimpleNamespace(env_specs={}),
        register=lambda *_, **__: None,
        make=None,
        spec=None,
    )
    module(
        "gym",
        __version__="0.21.0",
        Env=object,
        spaces=module("gym.spaces", Box=Box),
        utils=module("gym.utils", seeding=seeding),
        envs=module("gym.envs", registration=registration),
    )


def make(name, seed):
    """The environment of that name, after the first of its episodes, which is unlike all later ones."""
    if sys.version_info >= (3, 12):
        sys.exit("Python 3.12 and later add floats otherwise than PyBullet's authors knew: use an earlier one")
    if "gym" not in sys.modules:
        _stand_in_for_gym()
    from pybullet_envs import gym_locomotion_envs

    environment = getattr(gym_locomotion_envs, ENVIRONMENTS[name])()
    environment.seed(seed)
    # Until the first reset is over the floor is not among the parts whose positions are averaged.
    environment.reset()
    return environment
