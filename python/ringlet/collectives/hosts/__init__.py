"""Groups over several hosts. Collectives use shared memory within each host, and MPI between the hosts' leaders.

``host_join`` creates a group, ``host_member`` implements the collectives of one rank, ``host_group`` records the
failure of the group, and ``host_link`` sends messages between leaders. Only ``mpi_transport`` calls mpi4py.
"""
