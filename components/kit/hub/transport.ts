/** How the bytes of a connection reach its client. */
export interface Transport {
  readonly name: 'WebSockets' | 'ServerSentEvents' | 'LongPolling';
  /** Whether the connection lives by pings in both directions; held polls show by themselves that both ends live. */
  readonly isPinged: boolean;
  /** Bytes that were given to `send` and have not left the process. */
  unsentBytes(): number;
  /** Sends whole records. */
  send(records: Buffer): void;
  /** Sends the last records, if any, and ends; what the client does not take in time is dropped. */
  end(last: Buffer): void;
  /** Judges the transport's own timeouts; false when the client is gone. */
  tick(nowMs: number): boolean;
}

/** What a transport reports to its connection. */
export interface TransportEvents {
  onBytes(bytes: Buffer): void;
  /** The client is gone: nothing can be sent any more. */
  onGone(): void;
}
