/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where requests of servers begin and end: a thread has received data by a connection of a chosen port or path, or has
 * sent some. Each such call is a sample of an event of its own.
 *
 * A call that sends has another sample where it begins. Its data may be answered before it ends: the thread is taken off
 * its CPU, and another one receives the next request meanwhile.
 *
 * Part of stacks.bpf.c.
 */

/* Ports and paths that may be chosen. */
#define SOCKETS_MAX 16
/* A path as the kernel has it, with zeros behind. */
#define SOCKET_PATH_WORDS ((UNIX_PATH_BYTES + 7) / 8)
/* The call receives errors, and no data. */
#define MSG_ERRQUEUE 0x2000

/* All sockets with a local port of TCP, or with a path. */
struct chosen_socket {
	/* 0: by the path. */
	u64 port;
	u64 path[SOCKET_PATH_WORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct chosen_socket));
	__uint(max_entries, SOCKETS_MAX);
} chosen_sockets SEC(".maps");

/* Events of the kind bpf-output: two for each chosen socket of each CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
	__uint(max_entries, 1);
} socket_events SEC(".maps");

enum socket_edge {
	SOCKET_RECEIVED = 0,
	SOCKET_SENT = 1,
	SOCKET_EDGES = 2,
};

/* The data of a sample: see whit-perfdata, request.rs. */
struct socket_mark {
	/* The number of the connection, which no other one gets. */
	u64 cookie;
	/* Received, or sent. None received: the peer sends no more. */
	u32 bytes;
	u16 family;
	u16 peer_port;
	/* An address; of a UNIX socket the number of the process. */
	u64 peer[2];
};

/* In the place of sent bytes. */
#define SEND_BEGINS 0
#define SENT_NOTHING 0xffffffff

/* A socket on the way to its sample. */
struct marked_socket {
	u64 sock;
	u32 family;
	u32 port;
	u64 path[SOCKET_PATH_WORDS];
};

/* Reads what sockets are chosen by. Returns 0 for other kinds of sockets. */
static ALWAYS_INLINE u32 read_socket(struct marked_socket *socket)
{
	socket->family = kernel_field(struct sock, socket->sock, __sk_common.skc_family);
	if (socket->family == AF_INET || socket->family == AF_INET6) {
		socket->port = kernel_field(struct sock, socket->sock, __sk_common.skc_num);
		return kernel_field(struct sock, socket->sock, sk_protocol) == IPPROTO_TCP;
	}
	if (socket->family != AF_UNIX || !core_type_exists(struct unix_sock))
		return 0;
	u64 address = kernel_address(struct unix_sock, socket->sock, addr);

	if (!address)
		return 0;
	u32 bytes = kernel_field(struct unix_address, address, len);
	u64 path = address + field_offset(struct unix_address, name) + sizeof(u16);

	if (bytes <= sizeof(u16) || bytes > UNIX_PATH_BYTES + sizeof(u16))
		return 0;
	return !bpf_probe_read_kernel(socket->path, bytes - sizeof(u16), (const void *)path);
}

/* The number of the chosen socket; SOCKETS_MAX for none. */
UNWIND_FN u32 number_of_socket(const struct marked_socket *socket)
{
	if (!socket)
		return SOCKETS_MAX;
	for (u32 number = 0; number < SOCKETS_MAX; number++) {
		/* The verifier counts on with a number that has no address. */
		u32 key = number;
		const struct chosen_socket *chosen = bpf_map_lookup_elem(&chosen_sockets, &key);
		u64 differs = 0;

		if (!chosen || chosen->port != socket->port)
			continue;
		for (u32 word = 0; word < SOCKET_PATH_WORDS; word++)
			differs |= chosen->path[word] ^ socket->path[word];
		if (!differs)
			return number;
	}
	return SOCKETS_MAX;
}

static ALWAYS_INLINE void read_peer(const struct marked_socket *socket, struct socket_mark *mark)
{
	u64 sock = socket->sock;

	mark->family = socket->family;
	if (socket->family == AF_UNIX) {
		u64 process = kernel_address(struct sock, sock, sk_peer_pid);

		mark->peer[0] = process ? number_of_pid(process) : 0;
		return;
	}
	/* In the order of the network. */
	mark->peer_port = kernel_field(struct sock, sock, __sk_common.skc_dport);
	if (socket->family == AF_INET) {
		mark->peer[0] = kernel_field(struct sock, sock, __sk_common.skc_daddr);
		return;
	}
	u64 address = sock + field_offset(struct sock, __sk_common.skc_v6_daddr);

	mark->peer[0] = kernel_word(address);
	mark->peer[1] = kernel_word(address + 8);
}

/* Writes a sample of a chosen socket that a recorded thread uses. */
static ALWAYS_INLINE int mark_socket(void *ctx, struct sock *sk, u32 edge, u32 bytes)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct marked_socket socket = { .sock = (u64)sk };
	u32 cpu = bpf_get_smp_processor_id();

	if (!read_socket(&socket))
		return 0;
	u32 number = number_of_socket(&socket);

	if (number >= SOCKETS_MAX || !is_target(task, tid_of(task), process_of(pid_of(task))))
		return 0;
	struct socket_mark mark = { .cookie = bpf_get_socket_cookie(sk), .bytes = bytes };

	read_peer(&socket, &mark);
	bpf_perf_event_output(ctx, &socket_events,
			      (cpu * SOCKETS_MAX + number) * SOCKET_EDGES + edge, &mark, sizeof(mark));
	return 0;
}

/* (struct sock *sk, int ret, int flags) */
SEC("tp_btf/sock_recv_length")
int received(u64 *ctx)
{
	if ((s32)ctx[1] < 0 || ctx[2] & MSG_ERRQUEUE)
		return 0;
	return mark_socket(ctx, (void *)ctx[0], SOCKET_RECEIVED, ctx[1]);
}

/* The same. */
SEC("tp_btf/sock_send_length")
int sent(u64 *ctx)
{
	return mark_socket(ctx, (void *)ctx[0], SOCKET_SENT, (s32)ctx[1] > 0 ? ctx[1] : SENT_NOTHING);
}

/* (struct socket *sock, struct msghdr *msg, int size) */
SEC("fentry/security_socket_sendmsg")
int sending(u64 *ctx)
{
	return mark_socket(ctx, ((struct socket *)ctx[0])->sk, SOCKET_SENT, SEND_BEGINS);
}
