/** Bounds of every hub. Milliseconds and bytes. */
export const hubLimits = {
  /** From the start of a connection to its handshake record. */
  handshakeMs: 15_000,
  /** From a negotiation to the first request with its token. */
  openMs: 15_000,
  pingMs: 10_000,
  /** Silence of a client, whose library pings every 15 s. */
  clientTimeoutMs: 30_000,
  /** Longest held poll. */
  pollMs: 25_000,
  /** Shortest time between the answers to two polls with records. */
  pollSpacingMs: 50,
  /** Longest time between two polls. */
  pollGapMs: 15_000,
  /** Time to take the last bytes after a close record. */
  closeMs: 5_000,
  /** Interval in which timeouts, expiry and revocations are judged. */
  tickMs: 500,
  /** Interval in which subscriptions are judged again. */
  judgeMs: 60_000,
  recordBytes: 32 * 1024,
  /** A message or body of a client, which may hold several records. */
  messageBytes: 128 * 1024,
  /** Invocations of a connection that wait for an earlier one, and their bytes with those of the earlier one. */
  waitingInvocations: 1_024,
  waitingBytes: 64 * 1024,
  /** Unsent bytes over which a connection gets `instead` of a signal. */
  slowBytes: 256 * 1024,
  /** Invocations of a connection that stream their results at one time. */
  streamsPerConnection: 4,
  /** Unsent bytes over which a connection is closed. */
  closeBytes: 1024 * 1024,
  /** Signals that are written together. */
  batchBytes: 64 * 1024,
  connectionsPerUser: 20,
  connectionsPerReplica: 10_000,
  groupsPerConnection: 100,
  /** Replays that read the log at one time, each of another user. */
  replays: 4,
  replayMs: 24 * 3_600_000,
  replaySignals: 1_000,
  /** Events are dated by the start of their transaction, which may precede that of an earlier event by this much. */
  replayOverlapMs: 10_000,
  /** Requests that a replica hands to other ones at one time. */
  handedRequests: 4_096,
} as const;

export type HubLimits = { readonly [Name in keyof typeof hubLimits]: number };
