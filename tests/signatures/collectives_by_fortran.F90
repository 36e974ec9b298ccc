! SPDX-License-Identifier: BSD-3-Clause
!
! Collectives by Fortran's bindings, as collectives.c: rank 1 has reals where others have integers the second time, and rank 0 prints what has to
! be told. BINDING is the name of this program, and one of BY_MPIFH, BY_MPI and BY_MPI_F08 is defined (by_fortran.F90).
program collectives_by_fortran
#if defined(BY_MPI_F08)
  use mpi_f08
#elif defined(BY_MPI)
  use mpi
#endif
  implicit none
#if defined(BY_MPIFH)
  include 'mpif.h'
#endif
  integer :: rank, ierr, i
  integer :: ints(12), more(12), counts(3), displs(3), offsets(3)
  integer :: statuses(100)
#if defined(BY_MPI_F08)
  type(MPI_Datatype) :: kind_of, kinds(3)
  type(MPI_Request) :: requests(2)
  type(MPI_Status) :: status
#else
  integer :: kind_of, kinds(3)
  integer :: requests(2)
  integer :: status(MPI_STATUS_SIZE)
#endif

  ints = 0
  more = 0
  counts = 4
  displs = [0, 4, 8]
  offsets = [0, 16, 32]
  statuses = 0
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  do i = 1, 2
     kind_of = MPI_INTEGER
     if (i == 2 .and. rank == 1) kind_of = MPI_REAL
     kinds = kind_of
     call MPI_Barrier(MPI_COMM_WORLD, ierr)
     call MPI_Bcast(ints, 4, kind_of, 0, MPI_COMM_WORLD, ierr)
     call MPI_Allreduce(ints, more, 4, kind_of, MPI_SUM, MPI_COMM_WORLD, ierr)
     call MPI_Alltoallw(ints, counts, offsets, kinds, more, counts, offsets, kinds, MPI_COMM_WORLD, ierr)
     call MPI_Ibcast(ints, 4, kind_of, 0, MPI_COMM_WORLD, requests(1), ierr)
     call MPI_Wait(requests(1), status, ierr)
     call MPI_Ibarrier(MPI_COMM_WORLD, requests(1), ierr)
     call MPI_Igather(ints, 4, kind_of, more, 4, kind_of, 0, MPI_COMM_WORLD, requests(2), ierr)
     call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
  end do
  if (rank == 0) then
     call same('MPI_Bcast', ', root 0')
     call same('MPI_Allreduce', ', MPI_SUM')
     call edge(0, 1)
     call edge(1, 0)
     call edge(1, 2)
     call edge(2, 1)
     call same('MPI_Ibcast', ', root 0')
     call same('MPI_Igather', ', root 0')
  end if

  ! in place, and what is not significant is not looked at
  call MPI_Allreduce(MPI_IN_PLACE, ints, 4, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  if (rank == 2) then
     call MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, more, 4, MPI_INTEGER, 2, MPI_COMM_WORLD, ierr)
     call MPI_Gatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, more, counts, displs, MPI_INTEGER, 2, MPI_COMM_WORLD, ierr)
  else
     call MPI_Gather(ints, 4, MPI_INTEGER, more, 9, MPI_DATATYPE_NULL, 2, MPI_COMM_WORLD, ierr)
     call MPI_Gatherv(ints, 4, MPI_INTEGER, more, counts, displs, MPI_DATATYPE_NULL, 2, MPI_COMM_WORLD, ierr)
  end if
  call MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, more, 4, MPI_INTEGER, MPI_COMM_WORLD, ierr)
  call MPI_Alltoallv(MPI_IN_PLACE, counts, displs, MPI_DATATYPE_NULL, more, counts, displs, MPI_INTEGER, MPI_COMM_WORLD, ierr)
  if (rank == 1) print '(A)', 'PASS ' // BINDING
  call MPI_Finalize(ierr)

contains

  subroutine same(name, rest)
    character(*), intent(in) :: name, rest
    print '(A)', 'rank 0 calls ' // name // ' of 4 x MPI_INTEGER' // rest // ', rank 1 calls ' // name // ' of 4 x MPI_REAL' // rest
  end subroutine same

  function kind_name(of_rank)
    integer, intent(in) :: of_rank
    character(11) :: kind_name
    kind_name = 'MPI_INTEGER'
    if (of_rank == 1) kind_name = 'MPI_REAL'
  end function kind_name

  subroutine edge(from, to)
    integer, intent(in) :: from, to
    print '(A,I0,A,I0,A,I0,A,I0)', 'rank ', from, ' calls MPI_Alltoallw with 4 x ' // trim(kind_name(from)) // ' for rank ', to, &
         ', rank ', to, ' calls MPI_Alltoallw with 4 x ' // trim(kind_name(to)) // ' from rank ', from
  end subroutine edge
end program collectives_by_fortran
