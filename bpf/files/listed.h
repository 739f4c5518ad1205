/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel's tables of sockets, of the reader's network namespace: what has no descriptor is only there. The iterators
 * hold the sockets that they show. The records follow those of the walk.
 */
#ifndef FASTPROC_FILES_LISTED_H
#define FASTPROC_FILES_LISTED_H

/* Records a socket. Returns its number, or 0. */
int list_socket(u64 sk);
__noinline int list_socket(u64 sk)
{
	u32 index = run.records;
	struct files_record *r = bpf_map_lookup_elem(&records, &index);
	u32 state = CAST(struct sock, sk)->__sk_common.skc_state;

	if (!r) {
		run.lost_records++;
		return 0;
	}
	__builtin_memset(r, 0, sizeof(*r));
	if (!is_short(state))
		r->ino = number_of(sk);
	r->socket = read_socket(sk);
	run.records = index + 1;
	return r->socket;
}

/* The same with the user whom the kernel's text shows. */
static __always_inline void list_inet(u64 sk, u32 uid)
{
	u32 index = list_socket(sk) - 1;
	struct files_socket *s = bpf_map_lookup_elem(&sockets, &index);

	if (s)
		s->uid = uid;
}

SEC("iter/tcp") int list_tcp(struct bpf_iter__tcp *ctx)
{
	u64 sk = VALUE(ctx->sk_common);

	if (sk)
		list_inet(sk, ctx->uid);
	return 0;
}

SEC("iter/udp") int list_udp(struct bpf_iter__udp *ctx)
{
	u64 sk = VALUE(ctx->udp_sk);

	if (sk)
		list_inet(sk, ctx->uid);
	return 0;
}

SEC("iter/unix") int list_unix(struct bpf_iter__unix *ctx)
{
	u64 sk = VALUE(ctx->unix_sk);

	if (sk)
		list_socket(sk);
	return 0;
}

#endif
