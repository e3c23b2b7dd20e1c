"""Gymnasium's robots on our contact."""

from __future__ import annotations

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

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


# Vectors


def vector_course(env, steps=40, seed=0):
    """Everything that a vector of environments returns, step by step."""
    rng = np.random.default_rng(seed)
    observations, _ = env.reset(seed=7)
    seen = [observations]
    for _ in range(steps):
        actions = rng.uniform(env.action_space.low, env.action_space.high).astype(np.float32)
        observations, rewards, ended, cut, infos = env.step(actions)
        if env.metadata["autoreset_mode"] == AutoresetMode.DISABLED and (ended | cut).any():
            observations, _ = env.reset(options={"reset_mask": ended | cut})
        seen += [observations, rewards, ended, cut]
    return seen, infos


def equal(one, other):
    return len(one) == len(other) and all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_vector_has_the_bits_of_environments_that_were_wrapped_one_by_one(mode):
    """In all three modes of resetting, whatever the number of threads; hoppers fall, so that episodes end."""
    plain = wrap(gymnasium.make_vec("Hopper-v5", 3, vectorization_mode="sync", vector_kwargs={"autoreset_mode": mode}))
    expected, _ = vector_course(plain)
    assert any(each.dtype == bool and each.any() for each in expected), "no episode ended"
    for workers in (1, 2):
        env = st.gym.VectorEnv("Hopper-v5", 3, workers=workers, autoreset_mode=mode)
        assert isinstance(env, gymnasium.vector.VectorEnv)
        assert env.metadata["autoreset_mode"] == mode
        assert (env.num_envs, env.single_action_space) == (3, plain.single_action_space)
        found, _ = vector_course(env)
        assert equal(found, expected)
        assert all(each.unwrapped.contact.residual <= 1e-8 for each in env.envs)
        env.close()


@pytest.mark.parametrize("name", ["Ant-v5", "HalfCheetah-v5"])
def test_other_tasks_as_a_vector(name):
    plain = wrap(gymnasium.make_vec(name, 2, vectorization_mode="sync"))
    env = st.gym.VectorEnv(name, 2, workers=2)
    assert equal(vector_course(env, 15)[0], vector_course(plain, 15)[0])
    assert env.observation_space == plain.observation_space
    env.close()


def test_vector_wrappers_take_it():
    env = gymnasium.wrappers.vector.RecordEpisodeStatistics(st.gym.VectorEnv("Hopper-v5", 2))
    vector_course(env, 60)
    assert len(env.return_queue) > 0
    env.close()


def test_a_failure_ends_the_episode_and_says_why(monkeypatch):
    env = st.gym.VectorEnv("Hopper-v5", 3, workers=2)
    observations, _ = env.reset(seed=0)
    contact = env.envs[1].unwrapped.contact
    failed = st.solve(st.LCP([[0.0]], [-1.0]), throw=False)

    def fail(control, steps):
        raise st.SolveFailed(failed)

    monkeypatch.setattr(env.envs[1].unwrapped, "_step_mujoco_simulation", fail)
    actions = np.zeros((3, 3), np.float32)
    after, rewards, ended, cut, infos = env.step(actions)
    assert cut.tolist() == [False, True, False]
    assert not ended.any()
    assert np.array_equal(after[1], observations[1])
    assert rewards[1] == 0.0
    assert infos["contact"][1] == failed.explain()
    assert infos["_contact"].tolist() == [False, True, False]
    monkeypatch.setattr(env.envs[1].unwrapped, "_step_mujoco_simulation", contact.advance)
    _, _, _, cut, _ = env.step(actions)  # resets it
    assert not cut.any()
    env.step(actions)
    env.close()


def test_bad_vectors_are_named():
    with pytest.raises(st.InvalidScene, match="CartPoleEnv is no environment on Gymnasium's MujocoEnv"):
        st.gym.VectorEnv("CartPole-v1", 2)
    with pytest.raises(st.InvalidScene, match=r"gym.VectorEnv: num_envs must be a whole number of at least 1, got 0"):
        st.gym.VectorEnv("Hopper-v5", 0)
    with pytest.raises(st.InvalidScene, match=r"gym.VectorEnv: workers must be a whole number of at least 1, got 1.5"):
        st.gym.VectorEnv("Hopper-v5", 2, workers=1.5)

    class Elsewhere(gymnasium.vector.VectorEnv):
        pass

    with pytest.raises(st.InvalidScene, match=r"environments of Elsewhere are not in this process; .*st.gym.VectorEnv"):
        wrap(Elsewhere())
