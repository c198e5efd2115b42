/** An event for the clients of a hub: ids, times and a trace, never content. */
export interface Signal {
  /** Name of the event, the client's method. */
  readonly target: string;
  readonly arguments: readonly (string | number)[];
  /** Groups whose connections get it; a connection in several of them gets it once. */
  readonly groups: readonly string[];
  /** Sent in its place to connections that read slowly; for consecutive signals with the same one, once. */
  readonly instead?: Signal;
  /** The group has no further signals; its connections leave it. */
  readonly endsGroup?: string;
}
