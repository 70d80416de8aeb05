/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The object of a wait: the file, the socket, the pipe or the like that the system call of a thread names as
 * it leaves its CPU. An object is described once in a CPU's channel, as a stack is, and named by its place.
 *
 * The layout of descriptions is that of crates/file/whit-perfdata/src/wait_object.rs.
 *
 * Part of stacks.bpf.c.
 */
#ifndef WHIT_WAIT_OBJECT_H
#define WHIT_WAIT_OBJECT_H

/* The lowest byte of the first word of a description. Bits 8-15 have flags, or the reason; 32-63 the file descriptor,
 * or another number that the call names. */
enum {
	/* Bits 8-15: enum object_unknown; 32-63: the number of the call. */
	OBJECT_UNKNOWN = 1,
	/* The device, the inode, and the names of the path, each with a byte of zero, the last one first. */
	OBJECT_FILE = 2,
	/* The inode. */
	OBJECT_PIPE = 3,
	/* Its name. Bits 32-63: the file descriptor, since these files share an inode. */
	OBJECT_ANONYMOUS = 4,
	/* Bits 8-15: enum socket_role; 32-47: family; 48-63: protocol. Then the inode, the ports (own, and from bit 16 on
	 * the peer's), the own address and that of the peer, two words each. */
	OBJECT_INET = 5,
	/* Bits 8-15: enum socket_role; 32-63: the process of the peer. Then the inode, that of the peer, and the path. */
	OBJECT_UNIX = 6,
	/* Bits 32-47: family; 48-63: protocol. Then the inode. */
	OBJECT_SOCKET = 7,
	/* Bits 32-63: how many files one call waits for. */
	OBJECT_FILES = 8,
	/* Then the requested time in nanoseconds. */
	OBJECT_SLEEP = 9,
	/* Bits 32-63: the process that the call names, as a number with a sign. */
	OBJECT_CHILD = 10,
	/* Nothing but a signal ends the wait. */
	OBJECT_SIGNAL = 11,
	/* Bits 8-15: 1 for a set of semaphores, 0 for a message queue; 32-63: its number. */
	OBJECT_IPC = 12,
	/* No file of several was ready when the wait ended. */
	OBJECT_NO_FILE_READY = 13,
};

/* Which end has opened a connection; 0 where that is not known. */
enum socket_role {
	/* It takes connections. */
	SOCKET_LISTENS = 1,
	/* This end. */
	SOCKET_CONNECTED = 2,
	/* The peer. */
	SOCKET_ACCEPTED = 4,
};

/* Why an object is not known. */
enum object_unknown {
	/* A page fault or another exception: there is no call. */
	OBJECT_NO_CALL = 1,
	/* The call has no file descriptor. */
	OBJECT_NO_FILE = 2,
	/* The file descriptor is not open, or memory was not readable. */
	OBJECT_NOT_READABLE = 3,
	/* A thread of the kernel. */
	OBJECT_OF_KERNEL = 4,
	/* The call names several objects. */
	OBJECT_SEVERAL = 5,
	/* The thread ends, and has given its memory back. */
	OBJECT_OF_EXIT = 6,
};

/* The way to the object of a call. */
enum {
	/* The first argument is a file descriptor. */
	CALL_FILE = 1,
	/* The first argument is that of a socket to send to, the second that of a file to read. */
	CALL_SEND_FILE = 2,
	/* An array of `struct pollfd`, and its length. */
	CALL_POLL = 3,
	CALL_SEVERAL = 4,
	/* The first argument, or the third, is the address of a time. */
	CALL_SLEEP = 5,
	CALL_CLOCK_SLEEP = 6,
	CALL_WAIT4 = 7,
	CALL_WAITID = 8,
	CALL_SIGNAL = 9,
	CALL_MESSAGES = 10,
	CALL_SEMAPHORES = 11,
	/* The first argument is an epoll file. */
	CALL_EPOLL = 12,
};

#include "calls.h"

/* Numbers of file systems (include/uapi/linux/magic.h). */
#define PIPEFS_MAGIC 0x50495045
#define ANON_INODE_FS_MAGIC 0x09041934
#define SOCKFS_MAGIC 0x534f434b
#define AF_UNIX 1
#define AF_INET 2
#define AF_INET6 10
#define TCP_LISTEN 10
#define IPPROTO_TCP 6
#define IPPROTO_UDP 17
/* `inet_bind_bucket::fastreuse` of a port that connect() has chosen (net/ipv4/inet_hashtables.c). */
#define PORT_OF_CONNECT 0xff
#define TIMER_ABSTIME 1
/* `eventpoll::ovflist` while no files are passed on (fs/eventpoll.c). */
#define EP_UNACTIVE_PTR (~0ull)
#define P_PID 1
/* `task_struct::__state` of a task that a signal may wake (include/linux/sched.h), and of one that ends: its last switch
 * is no wait. */
#define TASK_INTERRUPTIBLE 1
#define TASK_DEAD 0x80

/* Directories of a path and mount points in it, at most, and bytes of its names: with the longest name they fit. */
#define PATH_STEPS 48
#define PATH_BYTES 512
#define NAME_BYTES 256
/* The words in front of a path, and those of the name of a file without a path. */
#define FILE_WORDS 3
#define ANONYMOUS_WORDS 4
/* The words of a socket of the internet. */
#define INET_WORDS 7
#define UNIX_PATH_BYTES 108

/* The byte offset of a field in a structure that holds it. */
#define field_offset(type, field) __builtin_preserve_field_info(((type *)0)->field, 0)

/* A number in a structure of the kernel at an address. */
#define kernel_field(type, address, field)                                                     \
	({                                                                                     \
		typeof(((type *)0)->field) field_value = 0;                                    \
		if (CAN_LOAD_KERNEL)                                                           \
			field_value = kernel_cast(type, address)->field;                       \
		else                                                                           \
			bpf_probe_read_kernel(&field_value, sizeof(field_value),               \
					      &((type *)(address))->field);                    \
		field_value;                                                                   \
	})

/* An address in a structure of the kernel, as a number: the verifier lets nobody calculate with one that it knows. */
#define kernel_address(type, address, field) kernel_word((address) + field_offset(type, field))

/* The registers of a system call. */
struct call_registers {
	u64 call;
	u64 arguments[3];
	/* Whether the thread is in a call. */
	u32 is_call;
	u32 is_64_bit;
};

static ALWAYS_INLINE void call_registers_at(struct task_struct *task, u64 address,
					    struct call_registers *out)
{
	struct pt_regs *regs;

	if (CAN_LOAD_KERNEL)
		regs = kernel_cast(struct pt_regs, address);
	else
		regs = bpf_task_pt_regs(task);
	out->call = CALL_NUMBER(regs);
	out->arguments[0] = CALL_FIRST(regs);
	out->arguments[1] = CALL_SECOND(regs);
	out->arguments[2] = CALL_THIRD(regs);
	out->is_64_bit = IS_64_BIT_MODE(regs->MODE_REGISTER);
	out->is_call = IS_IN_CALL(regs);
}

/* An object on the way to its description. */
struct wait_object {
	/* The task, as a number. */
	u64 task;
	/* The first word of the description. */
	u64 head;
	/* A file: its address, that of its inode, and that of the socket's protocol. */
	u64 file;
	u64 inode;
	u64 sock;
	/* The requested time. */
	u64 time;
};

static ALWAYS_INLINE u64 object_head(u32 kind, u32 flags, u32 number)
{
	return kind | flags << 8 | (u64)number << 32;
}

/* The socket of a file. Returns what distinguishes its description. */
UNWIND_FN u64 socket_object(struct wait_object *object, u64 key)
{
	if (!object)
		return 0;
	u64 socket = kernel_address(struct file, object->file, private_data);
	u64 sock = kernel_address(struct socket, socket, sk);
	u32 family = kernel_field(struct sock, sock, __sk_common.skc_family);
	u32 names = family | (u32)kernel_field(struct sock, sock, sk_protocol) << 16;

	object->sock = sock;
	if (family == AF_UNIX && core_type_exists(struct unix_sock)) {
		u64 peer = kernel_address(struct unix_sock, sock, peer);
		u64 process = kernel_address(struct sock, sock, sk_peer_pid);
		u64 address = kernel_address(struct unix_sock, sock, addr);

		object->head = object_head(OBJECT_UNIX, 0, 0);
		return unwind_mix(unwind_mix(unwind_mix(key, peer), process), address);
	}
	if (family != AF_INET && family != AF_INET6) {
		object->head = object_head(OBJECT_SOCKET, 0, names);
		return unwind_mix(key, names);
	}
	u32 listens = kernel_field(struct sock, sock, __sk_common.skc_state) == TCP_LISTEN;

	object->head = object_head(OBJECT_INET, listens, names);
	key = unwind_mix(key, kernel_field(struct sock, sock, __sk_common.skc_portpair));
	if (family == AF_INET)
		return unwind_mix(key,
				  kernel_field(struct sock, sock, __sk_common.skc_addrpair));
	u64 own = sock + field_offset(struct sock, __sk_common.skc_v6_rcv_saddr);
	u64 peer = sock + field_offset(struct sock, __sk_common.skc_v6_daddr);

	key = unwind_mix(unwind_mix(key, kernel_word(own)), kernel_word(own + 8));
	key = unwind_mix(unwind_mix(key, kernel_word(peer)), kernel_word(peer + 8));
	return key;
}

/* The file of a task's descriptor; 0 if it is not readable. */
UNWIND_FN u64 file_of_task(u64 task, u32 descriptor)
{
	u64 files = kernel_address(struct task_struct, task, files);
	u64 table = kernel_address(struct files_struct, files, fdt);
	u64 all = kernel_address(struct fdtable, table, fd);

	if (!all || descriptor >= kernel_field(struct fdtable, table, max_fds))
		return 0;
	return kernel_word(all + descriptor * 8ull);
}

/* A file, with its descriptor. Returns what distinguishes its description; 0 if it is not readable. */
UNWIND_FN u64 file_object(struct wait_object *object, u64 file, u32 descriptor)
{
	if (!object || !file)
		return 0;
	u64 inode = kernel_address(struct file, file, f_inode);

	if (!inode)
		return 0;
	u64 super = kernel_address(struct inode, inode, i_sb);
	u64 magic = kernel_field(struct super_block, super, s_magic);
	u64 key = unwind_mix(inode, kernel_field(struct inode, inode, i_ino));

	object->file = file;
	object->inode = inode;
	if (magic == PIPEFS_MAGIC) {
		object->head = object_head(OBJECT_PIPE, 0, 0);
		return unwind_mix(key, OBJECT_PIPE);
	}
	if (magic == SOCKFS_MAGIC)
		return socket_object(object, key);
	u64 dentry = kernel_address(struct file, file, f_path.dentry);

	key = unwind_mix(unwind_mix(key, dentry),
			 kernel_field(struct dentry, dentry, d_name.hash_len));
	if (magic == ANON_INODE_FS_MAGIC) {
		object->head = object_head(OBJECT_ANONYMOUS, 0, descriptor);
		return unwind_mix(key, descriptor);
	}
	object->head = object_head(OBJECT_FILE, 0, 0);
	return unwind_mix(key, kernel_address(struct dentry, dentry, d_parent));
}

/*
 * The file of an epoll call that was ready first, as the thread comes: where there was one, the thread would not have
 * waited. Returns what distinguishes its description; 0 if it is not known.
 */
UNWIND_FN u64 ready_object(struct wait_object *object, u32 descriptor)
{
	if (!object || !core_type_exists(struct eventpoll) || !core_type_exists(struct epitem))
		return 0;
	u64 file = file_of_task(object->task, descriptor);
	u64 poll = file ? kernel_address(struct file, file, private_data) : 0;

	if (!poll)
		return 0;
	u64 list = poll + field_offset(struct eventpoll, rdllist);
	u64 first = kernel_word(list);

	if (first == list) {
		u64 late = kernel_address(struct eventpoll, poll, ovflist);

		/* They are in the order of a stack: the first one is not known. */
		if (late && late != EP_UNACTIVE_PTR)
			return 0;
		object->head = object_head(OBJECT_NO_FILE_READY, 0, 0);
		return unwind_mix(object->head, 0);
	}
	u64 item = first - field_offset(struct epitem, rdllink);

	return file_object(object, kernel_address(struct epitem, item, ffd.file),
			   kernel_field(struct epitem, item, ffd.fd));
}

/* A time that a call names by an address, in nanoseconds. */
static ALWAYS_INLINE u64 requested_time(u64 address)
{
	s64 time[2] = {};

	if (bpf_probe_read_user(time, sizeof(time), (const void *)address))
		return 0;
	return time[0] * 1000000000 + time[1];
}

/* The way to the object of a call; 0 for none. */
static ALWAYS_INLINE u32 way_of_call(u32 call)
{
	u32 index = call;

	/* The verifier does not see that this is the number that was compared, so that the remainder has to stay. */
	asm volatile("" : "+r"(index));
	return call < CALLS ? call_objects[index % CALLS] : 0;
}

/* The object of a call, with its arguments. Returns what distinguishes the description. */
UNWIND_FN u64 call_object(struct wait_object *object, u32 call, u64 first, u64 second, u64 third)
{
	struct {
		s32 descriptor;
		s16 events[2];
	} poll = {};
	u32 way = way_of_call(call);
	u64 key = 0;

	if (!object)
		return 0;
	object->head = object_head(OBJECT_UNKNOWN, OBJECT_NOT_READABLE, call);
	switch (way) {
	case CALL_FILE:
	case CALL_EPOLL:
		key = file_object(object, file_of_task(object->task, first), first);
		break;
	case CALL_SEND_FILE:
		/* A thread waits for the file uninterruptibly, and for room in the socket otherwise. */
		if (!(kernel_field(struct task_struct, object->task, __state) & TASK_INTERRUPTIBLE))
			first = second;
		key = file_object(object, file_of_task(object->task, first), first);
		break;
	case CALL_POLL:
		object->head = object_head(OBJECT_FILES, 0, second);
		if (second == 1 && !bpf_probe_read_user(&poll, sizeof(poll), (const void *)first))
			key = file_object(object, file_of_task(object->task, poll.descriptor),
					  poll.descriptor);
		break;
	case CALL_SLEEP:
	case CALL_CLOCK_SLEEP:
		object->head = object_head(OBJECT_SLEEP, 0, 0);
		if (way == CALL_SLEEP)
			object->time = requested_time(first);
		else if (!(second & TIMER_ABSTIME))
			object->time = requested_time(third);
		break;
	case CALL_WAIT4:
		object->head = object_head(OBJECT_CHILD, 0, first);
		break;
	case CALL_WAITID:
		object->head = object_head(OBJECT_CHILD, 0, first == P_PID ? second : -1);
		break;
	case CALL_SIGNAL:
		object->head = object_head(OBJECT_SIGNAL, 0, 0);
		break;
	case CALL_MESSAGES:
	case CALL_SEMAPHORES:
		object->head = object_head(OBJECT_IPC, way == CALL_SEMAPHORES, first);
		break;
	case CALL_SEVERAL:
		object->head = object_head(OBJECT_UNKNOWN, OBJECT_SEVERAL, call);
		break;
	default:
		object->head = object_head(OBJECT_UNKNOWN, OBJECT_NO_FILE, call);
	}
	return key ? key : unwind_mix(object->head, object->time);
}

/*
 * Writes the names of a path behind the first words, the last one first. Returns the number of words.
 *
 * The walk leaves a file system by the directory where it is mounted, up to the root of the namespace.
 */
UNWIND_FN u32 path_words(struct channel_frames *to, u64 file)
{
	u64 dentry = kernel_address(struct file, file, f_path.dentry);
	u64 mount = kernel_address(struct file, file, f_path.mnt) -
		    field_offset(struct mount, mnt);
	u32 used = 0, is_cut = 1;

	if (!to)
		return 0;
	for (u32 at = FILE_WORDS; at < FILE_WORDS + (PATH_BYTES + NAME_BYTES) / 8; at++)
		to->words[at] = 0;
	for (u32 step = 0; step < PATH_STEPS && used < PATH_BYTES; step++) {
		u64 parent = kernel_address(struct dentry, dentry, d_parent);
		u64 root = kernel_address(struct mount, mount, mnt.mnt_root);

		if (dentry == root) {
			u64 above = kernel_address(struct mount, mount, mnt_parent);

			if (!above || above == mount) {
				is_cut = 0;
				break;
			}
			dentry = kernel_address(struct mount, mount, mnt_mountpoint);
			mount = above;
			continue;
		}
		u64 name = kernel_address(struct dentry, dentry, d_name.name);
		char *at = (char *)to->words + FILE_WORDS * 8 + (used & (PATH_BYTES - 1));
		long size = bpf_probe_read_kernel_str(at, NAME_BYTES, (const void *)name);

		if (size <= 0)
			break;
		used += size;
		/* A file of no directory. */
		if (parent == dentry) {
			is_cut = 0;
			break;
		}
		dentry = parent;
	}
	to->words[0] |= (u64)is_cut << 8;
	return FILE_WORDS + (used + 7) / 8;
}

/* The end that has opened a connection. The port of a program that has bound it and then connects says nothing. */
static ALWAYS_INLINE u32 inet_role(u64 sock)
{
	u32 protocol = kernel_field(struct sock, sock, sk_protocol);

	/* One that has a peer was connected: datagrams are not accepted. */
	if (protocol == IPPROTO_UDP)
		return kernel_field(struct sock, sock, __sk_common.skc_dport) ? SOCKET_CONNECTED : 0;
	if (protocol != IPPROTO_TCP ||
	    kernel_field(struct sock, sock, __sk_common.skc_state) == TCP_LISTEN)
		return 0;
	if (kernel_field(struct sock, sock, sk_max_ack_backlog))
		return SOCKET_ACCEPTED;
	if (!core_type_exists(struct inet_connection_sock) ||
	    !core_type_exists(struct inet_bind_bucket))
		return 0;
	u64 port = kernel_address(struct inet_connection_sock, sock, icsk_bind_hash);

	if (!port || kernel_field(struct inet_bind_bucket, port, fastreuse) != PORT_OF_CONNECT)
		return 0;
	return SOCKET_CONNECTED;
}

/* Describes a socket whose protocol is that of the internet. */
static ALWAYS_INLINE u32 inet_words(struct channel_frames *to, u64 sock)
{
	u32 family = kernel_field(struct sock, sock, __sk_common.skc_family);
	u32 peer_port = kernel_field(struct sock, sock, __sk_common.skc_dport);
	u32 own_port = kernel_field(struct sock, sock, __sk_common.skc_num);

	/* The peer's is in the order of the network. */
	peer_port = (peer_port >> 8 & 0xff) | (peer_port & 0xff) << 8;
	to->words[0] |= inet_role(sock) << 8;
	to->words[2] = own_port | peer_port << 16;
	if (family == AF_INET) {
		to->words[3] = kernel_field(struct sock, sock, __sk_common.skc_rcv_saddr);
		to->words[4] = 0;
		to->words[5] = kernel_field(struct sock, sock, __sk_common.skc_daddr);
		to->words[6] = 0;
		return INET_WORDS;
	}
	u64 own = sock + field_offset(struct sock, __sk_common.skc_v6_rcv_saddr);
	u64 peer = sock + field_offset(struct sock, __sk_common.skc_v6_daddr);

	to->words[3] = kernel_word(own);
	to->words[4] = kernel_word(own + 8);
	to->words[5] = kernel_word(peer);
	to->words[6] = kernel_word(peer + 8);
	return INET_WORDS;
}

/* Describes a UNIX socket: the path is that of the socket, or else of its peer. */
static ALWAYS_INLINE u32 unix_words(struct channel_frames *to, u64 sock)
{
	u64 peer = kernel_address(struct unix_sock, sock, peer);
	u64 address = kernel_address(struct unix_sock, sock, addr);
	u64 process = kernel_address(struct sock, sock, sk_peer_pid), inode = 0;
	/* A socket that listens has its own process there. */
	u32 number = peer && process ? number_of_pid(process) : 0;
	u32 role = 0;

	if (kernel_field(struct sock, sock, __sk_common.skc_state) == TCP_LISTEN)
		role = SOCKET_LISTENS;
	if (peer) {
		u64 of_peer = kernel_address(struct unix_sock, peer, addr);

		/* The one that is accepted has the address of the socket that listens. */
		if (!address != !of_peer)
			role = address ? SOCKET_ACCEPTED : SOCKET_CONNECTED;
		u64 socket = kernel_address(struct sock, peer, sk_socket);
		u64 file = socket ? kernel_address(struct socket, socket, file) : 0;

		if (!address)
			address = of_peer;
		if (file)
			inode = kernel_field(struct inode,
					     kernel_address(struct file, file, f_inode), i_ino);
	}
	to->words[0] |= role << 8 | (u64)number << 32;
	to->words[2] = inode;
	if (!address)
		return 3;
	u32 bytes = kernel_field(struct unix_address, address, len);
	u64 path = address + field_offset(struct unix_address, name) + sizeof(u16);

	if (bytes <= sizeof(u16) || bytes > UNIX_PATH_BYTES + sizeof(u16))
		return 3;
	bytes -= sizeof(u16);
	__builtin_memset(&to->words[3], 0, UNIX_PATH_BYTES + 4);
	if (bpf_probe_read_kernel(&to->words[3], bytes, (const void *)path))
		return 3;
	return 3 + (bytes + 7) / 8;
}

/* Writes the description of an object. Returns the number of words. */
UNWIND_FN u32 describe_object(const struct wait_object *object, struct channel_frames *to)
{
	if (!object || !to)
		return 0;
	u64 inode = object->inode;

	to->words[0] = object->head;
	switch ((u8)object->head) {
	case OBJECT_FILE: {
		u64 super = kernel_address(struct inode, inode, i_sb);

		to->words[1] = kernel_field(struct super_block, super, s_dev);
		to->words[2] = kernel_field(struct inode, inode, i_ino);
		return path_words(to, object->file);
	}
	case OBJECT_ANONYMOUS: {
		u64 dentry = kernel_address(struct file, object->file, f_path.dentry);
		u64 name = kernel_address(struct dentry, dentry, d_name.name);

		for (u32 at = 1; at < 1 + ANONYMOUS_WORDS; at++)
			to->words[at] = 0;
		bpf_probe_read_kernel_str(&to->words[1], ANONYMOUS_WORDS * 8, (const void *)name);
		return 1 + ANONYMOUS_WORDS;
	}
	case OBJECT_SLEEP:
		to->words[1] = object->time;
		return 2;
	case OBJECT_INET:
		to->words[1] = kernel_field(struct inode, inode, i_ino);
		return inet_words(to, object->sock);
	case OBJECT_UNIX:
		to->words[1] = kernel_field(struct inode, inode, i_ino);
		return core_type_exists(struct unix_sock) ? unix_words(to, object->sock) : 2;
	case OBJECT_PIPE:
	case OBJECT_SOCKET:
		to->words[1] = kernel_field(struct inode, inode, i_ino);
		return 2;
	default:
		return 1;
	}
}

#endif
