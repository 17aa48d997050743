"""Slices that tests draw."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np

from ringlet.tpu import DeviceAssignment, DeviceOrderMode, Topology

SVG = "{http://www.w3.org/2000/svg}"

Drawn = Topology | DeviceAssignment


def topology(name: str, **options: bool) -> Topology:
    """Return a slice by its name."""
    return Topology.from_accelerator_type(name, **options)


def assignment(
    name: str, shape: tuple[int, ...], replicas: int, mode: DeviceOrderMode = DeviceOrderMode.AUTO, **options: bool
) -> DeviceAssignment:
    """Return replicas of one shape on a slice."""
    return DeviceAssignment.build(topology(name, **options), shape, None, replicas, mode)


def degraded() -> Topology:
    """Return a slice of 2x4x4 chips; those of two hosts have no device."""
    full = topology("v4-64", megacore=True)
    return Topology(
        mesh_shape=full.mesh_shape,
        device_coordinates=np.delete(full.device_coordinates, [1, 6], axis=0),
        generation="v4",
    )


def some_loads(drawn: Drawn) -> np.ndarray:
    """Return a different number of MiB for each link."""
    links = getattr(drawn, "topology", drawn).links()
    return np.arange(len(links)) * 2.0**20


def parsed(svg: str) -> ElementTree.Element:
    """Return the root of a picture."""
    return ElementTree.fromstring(svg)


def classes(svg: str) -> set[str]:
    """Return the classes of all elements of a picture."""
    return {element.get("class", "") for element in parsed(svg).iter()}


def words(svg: str) -> list[str]:
    """Return all words that a picture shows."""
    return [element.text or "" for element in parsed(svg).iter(f"{SVG}text")]
