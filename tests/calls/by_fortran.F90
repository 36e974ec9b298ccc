! SPDX-License-Identifier: BSD-3-Clause
!
! The same by Fortran's bindings: -DBY_MPIFH, -DBY_MPI, or -DBY_MPI_F08. usage: mpirun -n 2 by_... NAME
program by_fortran
#ifdef BY_MPI
  use mpi
#endif
#ifdef BY_MPI_F08
  use mpi_f08
#endif
  implicit none
#ifdef BY_MPIFH
  include 'mpif.h'
#endif
#ifdef BY_MPI_F08
  type(MPI_Request) :: requests(4)
  type(MPI_Status) :: status
#else
  integer :: requests(4), status(MPI_STATUS_SIZE)
#endif
  integer :: rank, other, ierror, done, index, counts(2) = 3, displs(2) = [4, 0]
  logical :: flag
  double precision, asynchronous :: out(2000), in(2000)
  character(len=32) :: name

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call get_command_argument(1, name)
  other = 1 - rank
  out = rank
  in = 0
  select case (trim(name))
  case ('overlap')
    call MPI_Irecv(in, 600, MPI_DOUBLE_PRECISION, other, 1, MPI_COMM_WORLD, requests(1), ierror)
    call MPI_Isend(in(600:), 600, MPI_DOUBLE_PRECISION, other, 1, MPI_COMM_WORLD, requests(2), ierror)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierror)
  case ('overlap_bottom')
    call send_from_bottom()
  case ('overlap_parts')
    call MPI_Irecv(in(4:), 1, MPI_DOUBLE_PRECISION, rank, 1, MPI_COMM_WORLD, requests(1), ierror)
    call MPI_Iallgatherv(out, 3, MPI_DOUBLE_PRECISION, in, counts, displs, MPI_DOUBLE_PRECISION, MPI_COMM_WORLD, requests(2), &
                         ierror)
    call MPI_Isend(in(6:), 3, MPI_DOUBLE_PRECISION, rank, 2, MPI_COMM_WORLD, requests(3), ierror)
    call MPI_Irecv(in(20:), 3, MPI_DOUBLE_PRECISION, rank, 2, MPI_COMM_WORLD, requests(4), ierror)
    call MPI_Send(out, 1, MPI_DOUBLE_PRECISION, rank, 1, MPI_COMM_WORLD, ierror)
    call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE, ierror)
  case ('changed')
    call MPI_Irecv(in, 600, MPI_DOUBLE_PRECISION, other, 1, MPI_COMM_WORLD, requests(1), ierror)
    call MPI_Isend(out, 600, MPI_DOUBLE_PRECISION, other, 1, MPI_COMM_WORLD, requests(2), ierror)
    out(3) = 5
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierror)
  case ('unfinished')
    call MPI_Irecv(in, 600, MPI_DOUBLE_PRECISION, other, 1, MPI_COMM_WORLD, requests(1), ierror)
    call MPI_Send(out, 600, MPI_DOUBLE_PRECISION, other, 1, MPI_COMM_WORLD, ierror)
  case ('both_receive')
    call exchange()
  case ('head_to_head')
    call MPI_Send(out, 1, MPI_DOUBLE_PRECISION, other, 7, MPI_COMM_WORLD, ierror)
    call MPI_Recv(in, 1, MPI_DOUBLE_PRECISION, other, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
  case ('polls')
    call MPI_Irecv(in, 10, MPI_DOUBLE_PRECISION, other, 7, MPI_COMM_WORLD, requests(1), ierror)
    flag = .false.
    do while (.not. flag)
      call MPI_Test(requests(1), flag, MPI_STATUS_IGNORE, ierror)
      if (.not. flag) call MPI_Iprobe(other, 8, MPI_COMM_WORLD, flag, MPI_STATUS_IGNORE, ierror)
    end do
  case ('barrier')
    if (rank == 0) call MPI_Barrier(MPI_COMM_WORLD, ierror)
    if (rank == 1) call MPI_Recv(in, 10, MPI_DOUBLE_PRECISION, other, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
  case ('right')
    ! each way to complete, and persistent requests
    do done = 1, 10
      call MPI_Irecv(in, 600, MPI_DOUBLE_PRECISION, other, 1, MPI_COMM_WORLD, requests(1), ierror)
      call MPI_Isend(out, 600, MPI_DOUBLE_PRECISION, other, 1, MPI_COMM_WORLD, requests(2), ierror)
      call MPI_Waitany(2, requests, index, MPI_STATUS_IGNORE, ierror)
      call MPI_Waitany(2, requests, index, MPI_STATUS_IGNORE, ierror)
      out = done
      call MPI_Irecv(in, 600, MPI_DOUBLE_PRECISION, other, 1, MPI_COMM_WORLD, requests(1), ierror)
      call MPI_Isend(out, 600, MPI_DOUBLE_PRECISION, other, 1, MPI_COMM_WORLD, requests(2), ierror)
      flag = .false.
      do while (.not. flag)
        call MPI_Test(requests(1), flag, MPI_STATUS_IGNORE, ierror)
      end do
      flag = .false.
      do while (.not. flag)
        call MPI_Request_get_status(requests(2), flag, status, ierror) ! Open MPI sets no flag with MPI_STATUS_IGNORE
      end do
      out = -done
      call MPI_Wait(requests(2), MPI_STATUS_IGNORE, ierror)
      call MPI_Sendrecv(out, 10, MPI_DOUBLE_PRECISION, other, 2, in, 10, MPI_DOUBLE_PRECISION, other, 2, MPI_COMM_WORLD, &
                        MPI_STATUS_IGNORE, ierror)
      call MPI_Sendrecv_replace(in, 10, MPI_DOUBLE_PRECISION, other, 2, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
    end do
    call MPI_Send_init(out, 600, MPI_DOUBLE_PRECISION, other, 1, MPI_COMM_WORLD, requests(1), ierror)
    call MPI_Recv_init(in, 600, MPI_DOUBLE_PRECISION, other, 1, MPI_COMM_WORLD, requests(2), ierror)
    do done = 1, 10
      call MPI_Startall(2, requests, ierror)
      call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierror)
      out = done
    end do
    call MPI_Start(requests(2), ierror)
    call MPI_Start(requests(1), ierror)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierror)
    call MPI_Request_free(requests(1), ierror)
    call MPI_Request_free(requests(2), ierror)
  end select
  call MPI_Finalize(ierror)

contains

  subroutine exchange()
    call MPI_Recv(in, 10, MPI_DOUBLE_PRECISION, other, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
    call MPI_Send(out, 10, MPI_DOUBLE_PRECISION, other, 7, MPI_COMM_WORLD, ierror)
  end subroutine exchange

  subroutine send_from_bottom()
    integer(kind=MPI_ADDRESS_KIND) :: place(1)
    integer :: lengths(1) = 600
#ifdef BY_MPI_F08
    type(MPI_Datatype) :: absolute
#else
    integer :: absolute
#endif

    call MPI_Get_address(in(600), place(1), ierror)
    call MPI_Type_create_hindexed(1, lengths, place, MPI_DOUBLE_PRECISION, absolute, ierror)
    call MPI_Type_commit(absolute, ierror)
    call MPI_Irecv(in, 600, MPI_DOUBLE_PRECISION, other, 1, MPI_COMM_WORLD, requests(1), ierror)
    call MPI_Isend(MPI_BOTTOM, 1, absolute, other, 1, MPI_COMM_WORLD, requests(2), ierror)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierror)
    call MPI_Type_free(absolute, ierror)
  end subroutine send_from_bottom
end program by_fortran
