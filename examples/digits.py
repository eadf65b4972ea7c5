"""A governed training: a small network learns handwritten digits (5 to 9) up to a target accuracy.

    python examples/digits.py --json

The gradient steps are real: NumPy, Adam, scikit-learn's bundled digits. What makes it a governed job is marked with
(1) to (6) below; with no daemon running, it trains all the same. Where TRAINGOV_SIM_GPU names a virtual board, each
step also passes through its emulated GPU, which then sets the time that a step takes; otherwise it is the CPU's own.

Samples to accuracy per batch size were estimated on other digits (0 to 4), by ``traingov-proxy estimate digits``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time

from common import Device, Progress, open_device
from threadpoolctl import threadpool_limits

import traingov_client
from traingov_proxy.recipes import digits
from traingov_proxy.recipes.mlp import Adam

PROFILE_STARTS_WITHIN_S = 10.0
"""With --profile-only: how long to train on while the daemon has not begun to profile."""


def scaled(job: traingov_client.Job) -> float:
    """The learning rate for the job's batch size. The reference is named: it may not be among the job's own sizes."""
    return job.scale_lr(digits.LEARNING_RATE, reference_batch=digits.REFERENCE_BATCH)


def train(job: traingov_client.Job, device: Device, options: argparse.Namespace) -> dict[str, object]:
    """Train until the target accuracy is reached, or (profile_only) profiling has ended; ``max_samples`` at most."""
    task = digits.load_task("target")
    network, stream = digits.initial_network(task, options.seed), digits.SampleStream(task, options.seed)
    optimizer = Adam(network.parameters)
    progress = Progress(options.progress)
    learning_rate = scaled(job)  # (2) it follows the batch size

    samples, evaluate_at, accuracy = 0, digits.EVALUATE_EVERY, None
    reached = profiling = profiled = False
    history: list[tuple[int, float]] = []
    samples_by_batch: dict[int, int] = {}
    evaluation_s, begin_s = 0.0, time.monotonic()
    while samples < options.max_samples and (options.profile_only or not reached):
        if job.safe_point():  # (3) the batch size may change here
            learning_rate = scaled(job)
        batch_size = job.batch_size
        try:
            device.submit(options.workload, batch_size)
        except MemoryError:
            if not job.out_of_memory():  # (4) too large for the board: a smaller one, if there is one
                raise
            learning_rate = scaled(job)
            continue
        _, gradients = network.gradients(*stream.next(batch_size))
        optimizer.step(gradients, learning_rate)
        job.step(batch_size)  # (5) one step is done
        samples += batch_size
        samples_by_batch[batch_size] = samples_by_batch.get(batch_size, 0) + batch_size

        # Evaluate every so many samples, not steps, so that samples to accuracy compare over batch sizes.
        if samples >= evaluate_at:
            evaluate_at += digits.EVALUATE_EVERY
            device.synchronize()
            with job.pause("evaluation"):  # (6) evaluation is not training time
                evaluation_began_s = time.monotonic()
                accuracy = network.accuracy(task.test_inputs, task.test_labels)
                evaluation_s += time.monotonic() - evaluation_began_s
            reached = accuracy >= options.target
            history.append((samples, round(accuracy, 4)))
        progress.show(samples=samples, accuracy=accuracy, target=options.target)

        if options.profile_only:
            profiled = profiling and job.phase != "profile"
            profiling = profiling or job.phase == "profile"
            if profiled:
                break
            if not profiling and time.monotonic() - begin_s > PROFILE_STARTS_WITHIN_S:
                print("digits: nobody profiles this job (is traingovd running?); stopped", file=sys.stderr)
                break
    device.synchronize()
    return {
        "reached": reached,
        "samples_to_accuracy": samples if reached and not options.profile_only else None,
        "samples": samples,
        "seconds": round(time.monotonic() - begin_s - evaluation_s, 4),
        "target": options.target,
        "accuracy": accuracy,
        "profiled": profiled,
        "samples_by_batch_size": samples_by_batch,
        "history": history,
    }


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Train a small network on digits, governed by traingovd.")
    default_sizes = ",".join(map(str, digits.BATCH_SIZES))
    parser.add_argument("--workload", default="digits-mlp", help="name of the job's workload (default: %(default)s)")
    parser.add_argument("--batch-sizes", default=default_sizes, help="what it may train with (default: %(default)s)")
    parser.add_argument("--target", type=float, default=digits.TARGET_ACCURACY["target"], help="test accuracy, 0 to 1")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--max-samples", type=int, help=f"give up there (default: {digits.MAX_SAMPLES})")
    parser.add_argument(
        "--profile-only", action="store_true", help="train until the daemon has profiled the job, whatever the accuracy"
    )
    parser.add_argument("--json", action="store_true", help="print the result as a line of JSON at the end")
    parser.add_argument("--progress", action="store_true", help="print lines of JSON while training")
    options = parser.parse_args(arguments)
    if options.max_samples is None:  # profiling may take longer than training to the target does
        options.max_samples = digits.MAX_SAMPLES * (10 if options.profile_only else 1)
    try:
        options.batch_sizes = [int(part) for part in options.batch_sizes.split(",")]
    except ValueError:
        parser.error(f"--batch-sizes {options.batch_sizes!r}: give numbers such as 4,8,16")
    return options


def main() -> int:
    """Exit status 0 when the target was reached (or profiling is done), 1 when it was missed, 2 for wrong input."""
    options = parse()
    try:
        device = open_device()
        job = traingov_client.register(  # (1) from here on, the daemon knows this process
            workload=options.workload,
            batch_sizes=options.batch_sizes,
            samples_total=options.max_samples,
            signature={
                "architecture": "mlp-64-128-5",
                "input_shape": "64",
                "precision": "float64",
                "optimizer": "adam",
            },
            sync=device.synchronize,
        )
    except (ValueError, ConnectionError) as error:
        print(f"digits: {error}", file=sys.stderr)
        return 2
    with job, threadpool_limits(limits=1):  # the layers are small: more threads only get in each other's way
        try:
            result = train(job, device, options)
        except (ConnectionError, MemoryError) as error:
            print(f"digits: {error or 'out of memory'}", file=sys.stderr)
            return 1
    done = bool(result["profiled"] if options.profile_only else result["reached"])
    if options.json:
        print(json.dumps(result), flush=True)
    elif done and not options.profile_only:
        print(f"accuracy {options.target} after {result['samples']} samples, {result['seconds']:.1f} s of training")
    else:
        print(f"{'profiled' if done else 'stopped'} after {result['samples']} samples, accuracy {result['accuracy']}")
    return 0 if done else 1


if __name__ == "__main__":
    sys.exit(main())
