"""Groups over several hosts: shared memory within each host, MPI between the leaders of the hosts.

``host_join`` makes a group, ``host_member`` has the collectives of one rank, ``host_group`` the failure of the group,
``host_link`` the messages between leaders, and ``mpi_transport`` the only calls of mpi4py.
"""
