"""Errors about TensorFlow's names that are absent here, and a table of their replacements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from types import ModuleType
from typing import Any, NoReturn

from ringlet.compat.tensorflow.names import TENSORFLOW_NAMES

__all__ = ["ALTERNATIVES", "absent_error", "absent_getter", "namespace", "namespace_getter"]

GRADIENTS = "see docs/porting.md#gradients"


def _same(names: str, text: str) -> dict[str, str]:
    return {f"tf.{name}": text.format(name) for name in names.split()}


# Replacement for each of TensorFlow's names. An entry for a namespace applies to all names in the namespace.
ALTERNATIVES: dict[str, str] = {
    # gradients, models, optimizers
    **_same("GradientTape gradients custom_gradient autodiff hessians", f"use your framework's gradients, {GRADIENTS}"),
    **_same("grad_pass_through recompute_grad no_gradient", f"use the function of your framework, {GRADIENTS}"),
    **_same("optimizers nn", f"use your framework's models and optimizers, {GRADIENTS}"),
    **_same(
        "initializers keras.initializers constant_initializer ones_initializer random_normal_initializer "
        "random_uniform_initializer zeros_initializer",
        "use tf.zeros, tf.fill, tf.random.normal or tf.random.uniform",
    ),
    "tf.keras.utils": "use tf.random.set_seed for seeds, tf.one_hot for labels",
    "tf.keras": f"use your framework's models and optimizers, {GRADIENTS}",
    "tf.metrics": "use tf.metrics.Mean with one value for each example, such as tf.equal(labels, predictions)",
    "tf.losses": "use a class, as in tf.losses.MeanSquaredError(reduction='none'), or tf.nn and tf.reduce_mean",
    "tf.Module": "use a plain class; tf.train.Checkpoint(model=vars(model)) saves its variables",
    "tf.saved_model": "save variables with tf.train.Checkpoint",
    # arithmetic
    **_same("math linalg signal bitwise sets ragged sparse quantization", "use numpy and scipy"),
    **_same("strings image audio", "use Python or a library of your choice on tensor.numpy()"),
    "tf.random": "use numpy.random.default_rng(seed)",
    **_same("meshgrid searchsorted", "use numpy.{}, which returns tensors for tensors"),
    **{
        f"tf.{name}": f"use numpy.{other}, which returns tensors for tensors"
        for name, other in {
            "eig": "linalg.eig",
            "eigvals": "linalg.eigvals",
            "math.bincount": "bincount",
            "math.count_nonzero": "count_nonzero",
            "linalg.diag": "diag",
            "linalg.diag_part": "diagonal",
            "linalg.eigh": "linalg.eigh",
            "linalg.qr": "linalg.qr",
            "linalg.svd": "linalg.svd",
            "sequence_mask": "arange(maxlen) < lengths[..., None]",
        }.items()
    },
    "tf.slice": "use x[begin:end]",
    "tf.unique": "use numpy.unique, which sorts the values",
    "tf.unravel_index": "use numpy.unravel_index, which returns a tuple with the indices of each axis",
    # control flow and graphs
    **_same(
        "cond case switch_case while_loop map_fn foldl foldr scan vectorized_map",
        "write it in Python: functions run eagerly",
    ),
    **_same("py_function numpy_function", "call the Python function itself: functions run eagerly"),
    **_same(
        "control_dependencies init_scope name_scope group no_op",
        "delete it: functions run eagerly, in the order of the program",
    ),
    **_same("Graph Operation autograph graph_util", "there are no graphs: functions run eagerly"),
    **_same("debugging Assert assert_equal assert_greater assert_less assert_rank", "use assert, or numpy.testing"),
    **_same(
        "compat.v1.Session compat.v1.InteractiveSession compat.v1.placeholder "
        "compat.v1.global_variables_initializer compat.v1.get_variable compat.v1.disable_eager_execution "
        "compat.v1.train.MonitoredTrainingSession compat.v1.train.get_or_create_global_step "
        "compat.v1.train.get_global_step",
        "there are no sessions: functions run eagerly, and variables are initialized when created",
    ),
    "tf.compat.v1.ConfigProto": "delete it, and the argument config: there are no sessions",
    **_same("compat.v1.enable_eager_execution compat.v1.enable_v2_behavior", "delete it: functions run eagerly"),
    "tf.compat.v1.data": "use tf.data",
    **_same(
        "compat.v1.train.Saver compat.v1.train.Checkpoint compat.v1.train.CheckpointManager "
        "compat.v1.train.get_checkpoint_state compat.v1.train.latest_checkpoint",
        "use tf.train.Checkpoint and its manager",
    ),
    "tf.train.checkpoints_iterator": "call tf.train.latest_checkpoint(folder) periodically",
    **_same(
        "compat.v1.train.AdamOptimizer compat.v1.train.GradientDescentOptimizer compat.v1.train.MomentumOptimizer "
        "compat.v1.train.Optimizer",
        f"use your framework's optimizers, {GRADIENTS}",
    ),
    "tf.TensorArray": "use a list",
    "tf.TensorShape": "shapes are tuples",
    "tf.ensure_shape": "compare x.shape, a tuple",
    "tf.gather_nd": "use an index for each axis, x[i, j]",
    "tf.lookup": "use a dictionary",
    **_same(
        "tensor_scatter_nd_add tensor_scatter_nd_max tensor_scatter_nd_min tensor_scatter_nd_sub "
        "tensor_scatter_nd_update",
        "write to a copy, x.numpy()",
    ),
    "tf.get_logger": "use logging.getLogger('ringlet.train'), for example",
    "tf.test": "use pytest and numpy.testing",
    "tf.version": "tf.__version__ is the version of TensorFlow that these names follow",
    "tf.errors.OpError": "catch the class of the error, or RuntimeError and ValueError",
    "tf.summary": "write logs with your own library",
    "tf.profiler": "use a Python profiler, such as cProfile",
    # devices, clusters and coordination
    "tf.distribute.experimental.PreemptionWatcher": "use tf.distribute.experimental.PreemptionCheckpointHandler",
    "tf.tpu.XLAOptions": "delete it: functions are not compiled",
    "tf.tpu.experimental.embedding": "use arrays and numpy.take",
    "tf.distribute.experimental.rpc": "use a library for remote calls",
    "tf.distribute.cluster_resolver.LocalClusterResolver": "use ringlet.cluster_resolver.LocalClusterResolver",
    "tf.config.experimental": "delete it: there are no GPUs here",
    **_same("config.run_functions_eagerly config.functions_run_eagerly", "delete it: functions always run eagerly"),
    **_same("config.threading", "delete it: strategies run one thread for each replica"),
    **_same("config.optimizer config.set_soft_device_placement", "delete it: there are no graphs and no GPUs"),
    **_same(
        "config.get_visible_devices config.set_visible_devices",
        "choose devices with tf.config.set_logical_device_configuration, or pass device names to the strategy",
    ),
    # data
    **_same("data.Dataset.ragged_batch data.Dataset.sparse_batch", "use tf.data.Dataset.padded_batch"),
    **_same(
        "data.Dataset.make_one_shot_iterator data.Dataset.make_initializable_iterator", "use Python's iter(dataset)"
    ),
    "tf.data.experimental.service": "distribute the dataset with a strategy",
    **_same(
        "train.Example train.Features train.Feature train.BytesList train.FloatList train.Int64List",
        "write examples with ringlet.data.serialize_example({{name: values}})",
    ),
    "tf.io.gfile": "use open(), os, shutil and glob, as in os.makedirs(path, exist_ok=True)",
    "tf.io": "use pathlib and numpy",
    "tf.types": "use typing",
}


def absent_error(path: str, known: Iterable[str] = ()) -> AttributeError:
    """Return the error about an absent name, such as ``"tf.GradientTape"``; `known` are the names in its namespace."""
    parent, _, name = path.rpartition(".")
    instead = _alternative(path)
    if instead is not None:
        return AttributeError(f"ringlet has no {path}: {instead}", name=name)
    if name in TENSORFLOW_NAMES.get(parent, ()):
        return AttributeError(
            f"ringlet has no {path} and no replacement for it. dir({parent}) lists the available names", name=name
        )
    near = get_close_matches(name, list(known), n=3, cutoff=0.55)
    there = f". The nearest available names: {', '.join(near)}" if near else ""
    of_both = "; TensorFlow's module does not have it either" if parent in TENSORFLOW_NAMES else ""
    return AttributeError(f"module {parent!r} has no attribute {name!r}{of_both}{there}", name=name)


def _alternative(path: str) -> str | None:
    """Return the table's entry for a name, or the entry for its namespace if the name exists in TensorFlow."""
    if path in ALTERNATIVES:
        return ALTERNATIVES[path]
    parent, _, name = path.rpartition(".")
    return ALTERNATIVES.get(parent) if name in TENSORFLOW_NAMES.get(parent, ()) else None


def absent_getter(path: str, known: Iterable[str]) -> Callable[[str], NoReturn]:
    """Return the ``__getattr__`` of a namespace, which raises an error about the absent name."""
    names = list(known)

    def refuse(name: str) -> NoReturn:
        raise absent_error(f"{path}.{name}", names)

    return refuse


def namespace_getter(path: str, names: Mapping[str, Any]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a namespace that looks up names in a table."""

    def get(name: str) -> Any:
        if name in names:
            return names[name]
        raise absent_error(f"{path}.{name}", names)

    return get


def namespace(path: str, description: str, names: Mapping[str, Any]) -> Any:
    """Return a module that has no file, with the attributes in `names`."""
    module = ModuleType(path, description)
    public = sorted(names)
    module.__dict__.update(names, __all__=public, __getattr__=absent_getter(path, names), __dir__=public.copy)
    return module
