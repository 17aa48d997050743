"""Groups over several hosts: shared memory within each host, MPI between the hosts' first ranks, the leaders.

``host_join`` creates a group, ``host_member`` implements the collectives of one rank, ``host_group`` records the
failure of the group, and ``host_link`` sends messages between leaders. Only ``mpi_transport`` calls mpi4py.
"""
