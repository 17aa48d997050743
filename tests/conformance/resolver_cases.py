"""Runs recorded cases of clusters on ringlet; errors in the results are exception objects."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace as Record
from typing import Any

import ringlet
from ringlet import cluster_resolver as resolvers
from ringlet.cluster import ClusterSpec, cluster_queries
from ringlet.cluster.resolvers import slurm_resolver
from tests.conformance.common import decode


def attempt(fn: Callable[[], Any]) -> Any:
    """Return the result of a call, or the exception that it raises."""
    try:
        return fn()
    except Exception as error:
        return error


def dictionary(items: Any) -> Any:
    """Decode a cluster, whose dictionaries are recorded as pairs because keys may be numbers."""
    if isinstance(items, dict) and "items" in items:
        items = items["items"]
    elif not isinstance(items, list) or not all(isinstance(pair, list) for pair in items):
        return decode(items)
    return {job: dict(tasks["dict_items"]) if has_pairs(tasks) else decode(tasks) for job, tasks in items}


def has_pairs(tasks: Any) -> bool:
    return isinstance(tasks, dict) and "dict_items" in tasks


def view(spec: ClusterSpec) -> dict[str, Any]:
    return {"as_dict": spec.as_dict(), "jobs": spec.jobs, "bool": bool(spec), "repr": repr(spec)}


def view_of_job(spec: ClusterSpec, job: str) -> dict[str, Any]:
    return {
        "num_tasks": attempt(lambda: spec.num_tasks(job)),
        "task_indices": attempt(lambda: spec.task_indices(job)),
        "job_tasks": attempt(lambda: spec.job_tasks(job)),
        "address": [attempt(partial(spec.task_address, job, index)) for index in range(4)],
    }


# --- ClusterSpec, and what reads one ----------------------------------------------------------------------------------


def cluster_spec(given: dict[str, Any]) -> dict[str, Any]:
    cluster = dictionary(given["cluster"])
    spec = ClusterSpec(cluster)
    found = view(spec)
    found |= {f"job {job}": view_of_job(spec, job) for job in [*spec.jobs, "nojob"]}
    found["cluster_def_hex"] = spec.as_cluster_def().SerializeToString(deterministic=True).hex()
    found["copy_equal"] = ClusterSpec(spec).as_dict() == spec.as_dict()
    found["eq_spec"] = bool(ClusterSpec(cluster) == ClusterSpec(cluster))
    found["eq_dict"] = bool(ClusterSpec(cluster) == cluster)
    return found


def tf_config(given: dict[str, Any]) -> dict[str, Any]:
    resolver = resolvers.TFConfigClusterResolver(**given["kwargs"], environ=given["env"])
    found = {
        "task_type": attempt(lambda: resolver.task_type),
        "task_id": attempt(lambda: resolver.task_id),
        "rpc_layer": attempt(lambda: resolver.rpc_layer),
        "environment": attempt(lambda: resolver.environment),
        "cluster_spec": attempt(lambda: view(resolver.cluster_spec())),
        "master": attempt(resolver.master),
        "master_worker_1": attempt(lambda: resolver.master("worker", 1)),
        "master_worker_0_http": attempt(lambda: resolver.master("worker", 0, "http")),
    }
    resolver.task_type, resolver.task_id, resolver.rpc_layer = "ps", 7, "x"
    return {**found, "after_set": [resolver.task_type, resolver.task_id, resolver.rpc_layer]}


def simple(given: dict[str, Any]) -> dict[str, Any]:
    resolver = resolvers.SimpleClusterResolver(ClusterSpec(given["cluster"]), **given["kwargs"])
    found = {
        "task_type": resolver.task_type,
        "task_id": resolver.task_id,
        "environment": resolver.environment,
        "rpc_layer": resolver.rpc_layer,
        "num_accelerators": resolver.num_accelerators(),
        "cluster_spec": view(resolver.cluster_spec()),
        "master": attempt(resolver.master),
        "master_worker_1": attempt(lambda: resolver.master("worker", 1)),
        "master_type_only": attempt(lambda: resolver.master("worker")),
        "master_bad": attempt(lambda: resolver.master("worker", 9)),
        "master_bad_job": attempt(lambda: resolver.master("nojob", 0)),
        "master_rpc": attempt(lambda: resolver.master("ps", 0, "grpc")),
    }
    resolver.task_type, resolver.task_id, resolver.rpc_layer = "ps", 0, "q"
    after = [resolver.task_type, resolver.task_id, resolver.rpc_layer, attempt(resolver.master)]
    return {**found, "after_set": after}


def union(given: dict[str, Any]) -> dict[str, Any]:
    parts = [
        resolvers.SimpleClusterResolver(ClusterSpec(dictionary(part["cluster"])), **part["kwargs"])
        for part in given["resolvers"]
    ]
    resolver = resolvers.UnionResolver(*parts, **given["kwargs"])
    return {
        "cluster_spec": attempt(lambda: view(resolver.cluster_spec())),
        "task_type": resolver.task_type,
        "task_id": resolver.task_id,
        "rpc_layer": resolver.rpc_layer,
        "environment": resolver.environment,
        "master": attempt(resolver.master),
        "master_worker_1": attempt(lambda: resolver.master("worker", 1)),
        "num_accelerators": resolver.num_accelerators(),
    }


# --- machines that somebody manages -----------------------------------------------------------------------------------


def slurm(given: dict[str, Any]) -> dict[str, Any]:
    environ = dict(given["env"])
    resolver = resolvers.SlurmClusterResolver(**given["kwargs"], environ=environ)
    return {
        "before": [resolver.task_type, resolver.task_id, resolver.get_task_info()],
        "master_before": attempt(resolver.master),
        "cluster_spec": view(resolver.cluster_spec()),
        "task": list(resolver.get_task_info()),
        "master": attempt(resolver.master),
        "master_worker_1": attempt(lambda: resolver.master("worker", 1)),
        "master_rpc": attempt(lambda: resolver.master(rpc_layer="test")),
        "num_accelerators": resolver.num_accelerators(),
        "gpu_allocation": list(resolver._gpu_allocation),
        "cuda_visible_devices": environ.get("CUDA_VISIBLE_DEVICES"),
    }


class Pods:
    """A client of Kubernetes over a dictionary: label selector to pods."""

    def __init__(self, pods: dict[str, list[dict[str, str]]]) -> None:
        self.pods = pods

    def list_pod_for_all_namespaces(self, label_selector: str) -> Record:
        return Record(
            items=[
                Record(metadata=Record(name=pod["name"]), status=Record(phase=pod["phase"], host_ip=pod["ip"]))
                for pod in self.pods.get(label_selector, [])
            ]
        )


def kubernetes(given: dict[str, Any]) -> dict[str, Any]:
    resolver = resolvers.KubernetesClusterResolver(override_client=Pods(given["pods"]), **given["kwargs"])
    found = {
        "cluster_spec": view(resolver.cluster_spec()),
        "master": resolver.master(),
        "task": [resolver.task_type, resolver.task_id],
        "rpc_layer": resolver.rpc_layer,
        "master_worker_0": attempt(lambda: resolver.master("worker", 0)),
        "master_worker_1_x": attempt(lambda: resolver.master("worker", 1, "x")),
    }
    resolver.task_type, resolver.task_id = "worker", 1
    return {**found, "master_after_set": attempt(resolver.master)}


class Machines:
    """A client of Compute Engine over pages of dictionaries: name of a machine to its address."""

    def __init__(self, pages: list[dict[str, str]]) -> None:
        self.pages = pages

    def instanceGroups(self) -> Machines:
        return self

    def instances(self) -> Machines:
        return self

    def listInstances(self, **names: Any) -> Record | None:
        return self.page(0)

    def listInstances_next(self, previous_request: Record, previous_response: Any) -> Record | None:
        return self.page(previous_request.number + 1)

    def page(self, number: int) -> Record | None:
        if number >= len(self.pages):
            return None
        items = [{"instance": f"zones/z/instances/{name}"} for name in self.pages[number]]
        return Record(number=number, execute=lambda: {"items": items})

    def get(self, project: str, zone: str, instance: str) -> Record:
        [address] = [page[instance] for page in self.pages if instance in page]
        return Record(execute=lambda: {"networkInterfaces": [{"networkIP": address}]})


def gce(given: dict[str, Any]) -> dict[str, Any]:
    resolver = resolvers.GCEClusterResolver(
        "proj", "zone", "group", given["port"], credentials=None, service=Machines(given["pages"]), **given["kwargs"]
    )
    found = {
        "cluster_spec": view(resolver.cluster_spec()),
        "master": attempt(resolver.master),
        "task": [resolver.task_type, resolver.task_id],
        "rpc_layer": resolver.rpc_layer,
        "master_x": attempt(lambda: resolver.master(resolver.task_type, 0, "x")),
        "set_task_type": attempt(lambda: setattr(resolver, "task_type", "q")),
    }
    resolver.task_id = 0
    return {**found, "master_after_set": attempt(resolver.master)}


def utility(name: str) -> Callable[[dict[str, Any]], Any]:
    function = getattr(cluster_queries, name)
    return lambda given: function(*given.values())


def multi_worker_strategy(given: dict[str, Any]) -> dict[str, Any]:
    resolver = None
    if "cluster" in given:
        resolver = resolvers.SimpleClusterResolver(ClusterSpec(given["cluster"]), **given["kwargs"])
    strategy = ringlet.MultiWorkerMirroredStrategy(
        given.get("cluster_resolver", resolver), given.get("communication_options")
    )
    return {
        "num_replicas": strategy.num_replicas_in_sync,
        "resolver": type(strategy.cluster_resolver).__name__,
        "worker_devices": list(strategy.extended.worker_devices),
        "should_checkpoint": strategy.extended.should_checkpoint,
    }


def parameter_servers(given: dict[str, Any]) -> int:
    resolver = resolvers.SimpleClusterResolver(ClusterSpec(given["cluster"]), **given["kwargs"])
    return ringlet.ParameterServerStrategy(resolver).num_replicas_in_sync


def tpu(given: dict[str, Any]) -> dict[str, Any]:
    resolver = resolvers.TPUClusterResolver(**given["kwargs"])
    return {
        "cluster_spec": attempt(lambda: view(resolver.cluster_spec())),
        "master": attempt(resolver.master),
        "task": [resolver.task_type, resolver.task_id],
        "job": resolver.get_job_name(),
        "num_accelerators": attempt(resolver.num_accelerators),
        "environment": resolver.environment,
        "tpu_hardware_feature": resolver.tpu_hardware_feature,
    }


RUNNERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "cluster_spec": cluster_spec,
    "tf_config": tf_config,
    "simple": simple,
    "simple_bad_spec": lambda given: resolvers.SimpleClusterResolver(given["cluster"]),
    "union": union,
    "union_not_resolver": lambda given: resolvers.UnionResolver(*given["args"]),
    "slurm": slurm,
    "slurm_expand_hostlist": lambda given: slurm_resolver.expand_hostlist(given["hostlist"]),
    "slurm_expand_tasks": lambda given: slurm_resolver.expand_tasks_per_node(given["tasks_per_node"]),
    "kubernetes": kubernetes,
    "kubernetes_no_client": lambda given: resolvers.KubernetesClusterResolver(),
    "gce": gce,
    "gce_no_client": lambda given: resolvers.GCEClusterResolver("p", "z", "g", 1),
    "util/is_chief": utility("is_chief"),
    "util/id_in_cluster": utility("id_in_cluster"),
    "util/collective_leader": utility("collective_leader"),
    "util/worker_count": lambda given: cluster_queries.worker_count(given["cluster"], given["task_type"]),
    "mwms/local": multi_worker_strategy,
    "mwms/bad": multi_worker_strategy,
    "mwms/bad_options": multi_worker_strategy,
    "mwms/bad_resolver": multi_worker_strategy,
    "parameter_server/bad": parameter_servers,
    "tpu": tpu,
}
