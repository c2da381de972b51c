"""Multinomial logistic regression in numpy, by L-BFGS: the same numbers every time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from headrace_spots.analysis.model.ngrams import Block, Floats, Numbers

MEMORY = 8


class Sparse:
    """A block as a matrix that can be multiplied, its columns scaled."""

    def __init__(self, block: Block, buckets: int, scale: Floats | None = None) -> None:
        self.starts, self.columns, self.width = block.starts, block.buckets, buckets
        self.values = block.values if scale is None else block.values * scale[block.buckets]
        self._rows = block.rows

    def times(self, weights: Floats) -> Floats:
        """Return the scores of each text, `weights` being a row for each bucket."""
        padded = np.zeros((len(self.columns) + 1, weights.shape[1]), np.float32)
        np.multiply(weights[self.columns], self.values[:, None], out=padded[:-1])
        sums = np.add.reduceat(padded, self.starts[:-1], axis=0)
        sums[np.diff(self.starts) == 0] = 0
        return sums

    def transposed_times(self, errors: Floats) -> Floats:
        """Return for each bucket the sum of the errors of its texts."""
        return np.stack(
            [
                np.bincount(
                    self.columns,
                    weights=self.values * errors[self._rows, column],
                    minlength=self.width,
                )
                for column in range(errors.shape[1])
            ],
            axis=1,
        ).astype(np.float32)


class Dense:
    """A matrix of numbers with the same verbs."""

    def __init__(self, matrix: Floats) -> None:
        self.matrix, self.width = matrix, matrix.shape[1]

    def times(self, weights: Floats) -> Floats:
        """Return the scores of each text."""
        return self.matrix @ weights

    def transposed_times(self, errors: Floats) -> Floats:
        """Return for each column the sum of the errors of its texts."""
        return self.matrix.T @ errors


def softmax(scores: Floats) -> Floats:
    """Return scores as shares that add up to 1."""
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares: Floats = powers / powers.sum(axis=1, keepdims=True)
    return shares


def learn(
    parts: Sequence[Sparse | Dense],
    targets: Floats,
    *,
    penalties: Sequence[float],
    importance: Floats | None = None,
    rounds: int = 60,
) -> tuple[list[Floats], Floats]:
    """Return a matrix of weights for each part, and the biases, that explain `targets`: a row of
    shares for each text. `penalties` hold down the weights of each part; `importance` is how much
    a text counts.
    """
    classes = targets.shape[1]
    sizes = [part.width * classes for part in parts]
    borders = np.cumsum([0, *sizes])
    penalty = np.concatenate(
        [np.full(size, by, np.float32) for size, by in zip(sizes, penalties, strict=True)]
        + [np.zeros(classes, np.float32)]
    )
    if importance is None:
        importance = np.ones(len(targets), np.float32)

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights = [flat[begin:end].reshape(-1, classes) for begin, end in pairwise(borders)]
        scores = sum(part.times(by) for part, by in zip(parts, weights, strict=True))
        shares = softmax(scores + flat[-classes:])
        logs = (targets * np.log(shares + 1e-12)).sum(axis=1)
        value = -float((importance * logs).sum()) + float((penalty * flat * flat).sum()) / 2
        errors = (shares - targets) * importance[:, None]
        slopes = [part.transposed_times(errors).ravel() for part in parts]
        slope = np.concatenate([*slopes, errors.sum(axis=0)]).astype(np.float32)
        return value, np.asarray(slope + penalty * flat, np.float32)

    flat = lowest(loss, np.zeros(int(borders[-1]) + classes, np.float32), rounds)
    matrices = [flat[begin:end].reshape(-1, classes) for begin, end in pairwise(borders)]
    return matrices, flat[-classes:]


def lowest(loss: Callable[[Floats], tuple[float, Floats]], start: Floats, rounds: int) -> Floats:
    """Return where `loss` is lowest, after at most `rounds` steps of L-BFGS."""
    here = start
    value, slope = loss(here)
    steps: list[tuple[Floats, Floats, float]] = []
    for _ in range(rounds):
        direction = -_shaped(slope, steps)
        down = float(direction @ slope)
        pace = 1.0 if steps else 1.0 / max(float(np.linalg.norm(slope)), 1e-8)
        for _ in range(20):
            there = here + np.float32(pace) * direction
            new_value, new_slope = loss(there)
            if new_value <= value + 1e-4 * pace * down:
                break
            pace /= 2
        else:
            return here
        moved, turned = there - here, new_slope - slope
        curve = float(moved @ turned)
        if curve > 1e-10:
            steps = [*steps[-MEMORY + 1 :], (moved, turned, curve)]
        gained = value - new_value
        here, value, slope = there, new_value, new_slope
        if gained < 1e-5 * abs(value):
            return here
    return here


def _shaped(slope: Floats, steps: Sequence[tuple[Floats, Floats, float]]) -> Floats:
    """Return the slope as the last steps have shaped it: the two loops of L-BFGS."""
    shaped = slope.copy()
    shares = []
    for moved, turned, curve in reversed(steps):
        share = np.float32(float(moved @ shaped) / curve)
        shares.append(share)
        shaped -= share * turned
    if steps:
        _, turned, curve = steps[-1]
        shaped *= np.float32(curve / float(turned @ turned))
    for (moved, turned, curve), share in zip(steps, reversed(shares), strict=True):
        shaped += (share - np.float32(float(turned @ shaped) / curve)) * moved
    return shaped


def document_counts(block: Block, buckets: int) -> Numbers:
    """Return in how many texts each bucket occurs."""
    return np.bincount(block.buckets, minlength=buckets)
