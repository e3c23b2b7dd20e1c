"""Gymnasium's robots on our contact."""

from __future__ import annotations

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import stiction as st
from stiction.gym import wrap

NOISE = ("settotalmass", "Box observation space", "Box action spaces")


def made(name, **options):
    return wrap(gymnasium.make(name), **options)


@pytest.mark.parametrize("name", ["Hopper-v5", "HalfCheetah-v5", "Ant-v5"])
def test_wrapped_environments_pass_gymnasium_s_own_check(name):
    env = made(name)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        check_env(env.unwrapped, skip_render_check=True)
    assert [str(each.message) for each in told if not any(noise in str(each.message) for noise in NOISE)] == []


@pytest.mark.parametrize("name", ["Hopper-v5", "Ant-v5"])
def test_every_step_is_certified_and_the_same_seed_gives_the_same_bits(name):
    def run():
        env = made(name)
        actions = np.random.default_rng(0)
        seen = [env.reset(seed=3)[0]]
        for _ in range(60):
            action = actions.uniform(env.action_space.low, env.action_space.high).astype(np.float32)
            observation, reward, ended, _, _ = env.step(action)
            assert env.unwrapped.contact.report.certificate.residual <= 1e-8
            assert np.isfinite(reward)
            seen.append(observation)
            if ended:
                seen.append(env.reset()[0])
        return np.concatenate([each.ravel() for each in seen])

    assert np.array_equal(run(), run())


def test_an_action_is_as_many_steps_as_before():
    plain, exact = gymnasium.make("Hopper-v5"), made("Hopper-v5")
    for env in (plain, exact):
        env.reset(seed=0)
        env.step(np.zeros(3, np.float32))
    assert exact.unwrapped.data.time == pytest.approx(plain.unwrapped.data.time)
    assert exact.observation_space == plain.observation_space
    assert exact.action_space == plain.action_space


def test_a_robot_that_lies_still_does_not_sink():
    """The torso and legs of an ant that fell: no geom is deeper in the floor than rounding."""
    env = made("Ant-v5", law=st.Coulomb(facets=8)).unwrapped
    env.reset(seed=0)
    for _ in range(100):
        env.step(np.zeros(8, np.float32))
    assert env.contact.law == st.Coulomb(facets=8)
    assert min(env.data.contact.dist) > -1e-6
    weight = env.model.body_subtreemass[0] * 9.81
    assert np.abs(env.data.cfrc_ext[1:, 5].sum()) == pytest.approx(weight, rel=0.05)


def test_only_mujoco_environments_are_wrapped():
    with pytest.raises(st.InvalidScene, match="CartPoleEnv is no environment on Gymnasium's MujocoEnv"):
        wrap(gymnasium.make("CartPole-v1"))
