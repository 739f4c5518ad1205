/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The record of a socket: what /proc/net/tcp, udp and unix show of it. */
#ifndef FASTPROC_FILES_SOCKET_H
#define FASTPROC_FILES_SOCKET_H

/* Bytes of a unix name: sun_path. */
#define MOST_UNIX_NAME 108

/* The inode that stands beside a socket, and the reverse. */
static __always_inline u64 inode_of(u64 socket)
{
	return socket - bpf_core_field_offset(struct socket_alloc, socket) +
	       bpf_core_field_offset(struct socket_alloc, vfs_inode);
}

static __always_inline u64 socket_of(u64 inode)
{
	return inode - bpf_core_field_offset(struct socket_alloc, vfs_inode) +
	       bpf_core_field_offset(struct socket_alloc, socket);
}

static __always_inline u32 number_of(u64 sk)
{
	struct sock *s = CAST(struct sock, sk);
	u64 socket;

	if (bpf_core_field_exists(s->sk_ino))
		return s->sk_ino;
	socket = (u64)s->sk_socket;
	return socket ? CAST(struct inode, inode_of(socket))->i_ino : 0;
}

static __always_inline void read_queues(struct files_socket *r, u64 sk)
{
	struct sock *s = CAST(struct sock, sk);

	if (r->protocol == IPPROTO_TCP && r->sock_type == SOCK_STREAM) {
		struct tcp_sock *t = CAST(struct tcp_sock, sk);
		s32 unread = t->rcv_nxt - t->copied_seq;

		if (r->state == TCP_LISTEN) {
			r->rxq = s->sk_ack_backlog;
		} else {
			r->rxq = unread < 0 ? 0 : unread;
			r->txq = t->write_seq - t->snd_una;
		}
		return;
	}
	r->rxq = s->sk_backlog.rmem_alloc.counter;
	if (r->protocol == IPPROTO_UDP)
		r->rxq -= CAST(struct udp_sock, sk)->forward_deficit;
	r->txq = s->sk_wmem_alloc.refs.counter - 1;
}

/*
 * Whether this is a connection that waits for its end, or for its beginning: of that there is only the first part of a
 * socket. No descriptor leads to one.
 */
static __always_inline int is_short(u32 state)
{
	return state == TCP_TIME_WAIT || state == TCP_NEW_SYN_RECV;
}

static __always_inline void read_inet(struct files_socket *r, u64 sk)
{
	struct sock_common *c = &CAST(struct sock, sk)->__sk_common;

	r->sport = c->skc_num;
	r->dport = __builtin_bswap16(c->skc_dport);
	if (r->family == AF_INET) {
		r->saddr[0] = c->skc_rcv_saddr;
		r->daddr[0] = c->skc_daddr;
	} else if (bpf_core_field_exists(c->skc_v6_daddr)) {
		for (u32 i = 0; i < 4; i++) {
			r->saddr[i] = c->skc_v6_rcv_saddr.in6_u.u6_addr32[i];
			r->daddr[i] = c->skc_v6_daddr.in6_u.u6_addr32[i];
		}
	}
	read_queues(r, sk);
}

static __always_inline void read_unix(struct files_socket *r, u64 sk)
{
	struct unix_sock *u = CAST(struct unix_sock, sk);
	struct unix_address *address = CAST(struct unix_address, u->addr);
	u64 peer = (u64)u->peer;
	s32 length;

	/* the socket holds its peer */
	if (peer)
		r->peer = number_of(peer);
	if (!address)
		return;
	length = address->len - (s32)bpf_core_field_offset(struct sockaddr_un, sun_path);
	if (length <= 0 || length > MOST_UNIX_NAME || !begin_text())
		return;
	if (put_before(address->name[0].sun_path, length, 0)) {
		r->text = (run.text - 1) * FILES_PIECE + run.text_at;
		r->text_len = length;
	}
}

/* Reads a socket. Returns the number of its record, or 0 if there is no room. */
int read_socket(u64 sk);
__noinline int read_socket(u64 sk)
{
	u32 index = run.sockets;
	struct files_socket *r = bpf_map_lookup_elem(&sockets, &index);
	struct sock *s = CAST(struct sock, sk);

	if (!r) {
		run.lost_sockets++;
		return 0;
	}
	__builtin_memset(r, 0, sizeof(*r));
	run.sockets = index + 1;
	if (!sk)
		return index + 1;
	r->family = s->__sk_common.skc_family;
	r->state = s->__sk_common.skc_state;
	r->sock_type = s->sk_type;
	r->protocol = s->sk_protocol;
	r->netns = CAST(struct net, s->__sk_common.skc_net.net)->ns.inum;
	r->uid = s->sk_uid.val;
	if (r->family == AF_INET || r->family == AF_INET6) {
		read_inet(r, sk);
		if (is_short(r->state)) {
			r->rxq = r->txq = 0;
			r->sock_type = SOCK_STREAM;
			r->protocol = IPPROTO_TCP;
			r->state = r->state == TCP_TIME_WAIT ? CAST(struct inet_timewait_sock, sk)->tw_substate :
							       TCP_SYN_RECV;
		}
	}
	if (r->family == AF_UNIX)
		read_unix(r, sk);
	return index + 1;
}

#endif
