/** A register that this validator is a member of, with the contact times of the set. */
export interface RegisterContact {
  readonly registerId: string;
  readonly quorum: number;
  /** When each member was last heard; this validator itself counts as heard now. */
  readonly members: readonly { readonly heardAtMs: number }[];
}

/** Five missed heartbeats. */
const silentMs = 5_000;

/**
 * A member that hears no quorum may be partitioned: the others may advance without it, so its answers may be stale.
 * @throws Error naming the first register without a recently heard quorum, and the number of further ones
 */
export function assertQuorumConnected(contacts: readonly RegisterContact[], nowMs: number): void {
  const heard = ({ members }: RegisterContact) =>
    members.filter(({ heardAtMs }) => nowMs - heardAtMs <= silentMs).length;
  const [first, ...more] = contacts.filter((contact) => heard(contact) < contact.quorum);
  if (first === undefined) return;
  const others = more.length === 0 ? '' : `; ${more.length} more registers without a quorum`;
  const { registerId, quorum, members } = first;
  throw new Error(
    `stale: ${heard(first)} of ${members.length} members of register ${registerId} were heard in the last ${silentMs / 1_000} s, a quorum is ${quorum}${others}`,
  );
}
