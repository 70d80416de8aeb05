/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The way to the object of each system call that may wait, by its number.
 *
 * Part of wait_object.h.
 */
#ifndef WHIT_CALLS_H
#define WHIT_CALLS_H

#define CALLS 512

static const volatile u8 call_objects[CALLS] = {
#ifdef __TARGET_ARCH_arm64
	/* ioctl, read, write, readv, writev, pread64, pwrite64 */
	[29] = CALL_FILE, [63] = CALL_FILE, [64] = CALL_FILE, [65] = CALL_FILE, [66] = CALL_FILE,
	[67] = CALL_FILE, [68] = CALL_FILE,
	/* pselect6, ppoll, futex_waitv */
	[72] = CALL_SEVERAL, [73] = CALL_POLL, [449] = CALL_SEVERAL,
	/* rt_sigsuspend, rt_sigtimedwait */
	[133] = CALL_SIGNAL, [137] = CALL_SIGNAL,
	/* nanosleep, clock_nanosleep */
	[101] = CALL_SLEEP, [115] = CALL_CLOCK_SLEEP,
	/* sendfile */
	[71] = CALL_SEND_FILE,
	/* accept, connect, sendto, recvfrom, sendmsg, recvmsg, accept4, recvmmsg, sendmmsg */
	[202] = CALL_FILE, [203] = CALL_FILE, [206] = CALL_FILE, [207] = CALL_FILE, [211] = CALL_FILE,
	[212] = CALL_FILE, [242] = CALL_FILE, [243] = CALL_FILE, [269] = CALL_FILE,
	/* waitid, wait4 */
	[95] = CALL_WAITID, [260] = CALL_WAIT4,
	/* msgrcv, msgsnd, semtimedop, semop */
	[188] = CALL_MESSAGES, [189] = CALL_MESSAGES, [192] = CALL_SEMAPHORES, [193] = CALL_SEMAPHORES,
	/* fcntl, flock, ftruncate, getdents64, fsync, fdatasync */
	[25] = CALL_FILE, [32] = CALL_FILE, [46] = CALL_FILE, [61] = CALL_FILE, [82] = CALL_FILE,
	[83] = CALL_FILE,
	/* epoll_pwait, epoll_pwait2 */
	[22] = CALL_EPOLL, [441] = CALL_EPOLL,
	/* mq_timedsend, mq_timedreceive */
	[182] = CALL_FILE, [183] = CALL_FILE,
	/* vmsplice, splice, tee, sync_file_range, fallocate, copy_file_range */
	[75] = CALL_FILE, [76] = CALL_SEVERAL, [77] = CALL_SEVERAL, [84] = CALL_FILE, [47] = CALL_FILE,
	[285] = CALL_SEVERAL,
	/* preadv, pwritev, syncfs, preadv2, pwritev2 */
	[69] = CALL_FILE, [70] = CALL_FILE, [267] = CALL_FILE, [286] = CALL_FILE, [287] = CALL_FILE,
	/* io_uring_enter */
	[426] = CALL_FILE,
#else
	/* read, write, ioctl, pread64, pwrite64, readv, writev */
	[0] = CALL_FILE, [1] = CALL_FILE, [16] = CALL_FILE, [17] = CALL_FILE, [18] = CALL_FILE,
	[19] = CALL_FILE, [20] = CALL_FILE,
	/* poll, select, pselect6, ppoll, futex_waitv */
	[7] = CALL_POLL, [23] = CALL_SEVERAL, [270] = CALL_SEVERAL, [271] = CALL_POLL,
	[449] = CALL_SEVERAL,
	/* pause, rt_sigtimedwait, rt_sigsuspend */
	[34] = CALL_SIGNAL, [128] = CALL_SIGNAL, [130] = CALL_SIGNAL,
	/* nanosleep, clock_nanosleep */
	[35] = CALL_SLEEP, [230] = CALL_CLOCK_SLEEP,
	/* sendfile */
	[40] = CALL_SEND_FILE,
	/* connect, accept, sendto, recvfrom, sendmsg, recvmsg, accept4, recvmmsg, sendmmsg */
	[42] = CALL_FILE, [43] = CALL_FILE, [44] = CALL_FILE, [45] = CALL_FILE, [46] = CALL_FILE,
	[47] = CALL_FILE, [288] = CALL_FILE, [299] = CALL_FILE, [307] = CALL_FILE,
	/* wait4, waitid */
	[61] = CALL_WAIT4, [247] = CALL_WAITID,
	/* semop, msgsnd, msgrcv, semtimedop */
	[65] = CALL_SEMAPHORES, [69] = CALL_MESSAGES, [70] = CALL_MESSAGES, [220] = CALL_SEMAPHORES,
	/* fcntl, flock, fsync, fdatasync, ftruncate, getdents, getdents64 */
	[72] = CALL_FILE, [73] = CALL_FILE, [74] = CALL_FILE, [75] = CALL_FILE, [77] = CALL_FILE,
	[78] = CALL_FILE, [217] = CALL_FILE,
	/* epoll_wait, epoll_pwait, epoll_pwait2 */
	[232] = CALL_EPOLL, [281] = CALL_EPOLL, [441] = CALL_EPOLL,
	/* mq_timedsend, mq_timedreceive */
	[242] = CALL_FILE, [243] = CALL_FILE,
	/* splice, tee, sync_file_range, vmsplice, fallocate, copy_file_range */
	[275] = CALL_SEVERAL, [276] = CALL_SEVERAL, [277] = CALL_FILE, [278] = CALL_FILE,
	[285] = CALL_FILE, [326] = CALL_SEVERAL,
	/* preadv, pwritev, syncfs, preadv2, pwritev2 */
	[295] = CALL_FILE, [296] = CALL_FILE, [306] = CALL_FILE, [327] = CALL_FILE,
	[328] = CALL_FILE,
	/* io_uring_enter */
	[426] = CALL_FILE,
#endif
};

#endif
