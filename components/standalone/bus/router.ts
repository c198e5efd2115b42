import { hasWildcard, matches } from './subjects.ts';

export interface Subscription<Owner> {
  readonly owner: Owner;
  readonly sid: string;
  readonly subject: string;
  readonly queue?: string;
  /** Messages delivered. */
  delivered: number;
  /** Ends after this many deliveries; 0 for never. */
  max: number;
}

interface Wild<Owner> {
  readonly tokens: readonly string[];
  readonly subscriptions: Set<Subscription<Owner>>;
}

/** Finds the receivers of a message: literal subjects by lookup, patterns by comparison. */
export class Router<Owner> {
  readonly #literal = new Map<string, Set<Subscription<Owner>>>();
  readonly #wild = new Map<string, Wild<Owner>>();

  add(subscription: Subscription<Owner>): void {
    this.#setOf(subscription.subject).add(subscription);
  }

  remove(subscription: Subscription<Owner>): void {
    const { subject } = subscription;
    const set = this.#literal.get(subject) ?? this.#wild.get(subject)?.subscriptions;
    set?.delete(subscription);
    if (set?.size !== 0) return;
    this.#literal.delete(subject);
    this.#wild.delete(subject);
  }

  /** Every plain subscription that matches, and one random member of each queue group. */
  receivers(subject: string): Subscription<Owner>[] {
    const plain: Subscription<Owner>[] = [];
    const groups = new Map<string, Subscription<Owner>[]>();
    for (const subscription of this.#matching(subject)) {
      const { queue } = subscription;
      if (queue === undefined) {
        plain.push(subscription);
        continue;
      }
      const group = groups.get(queue) ?? [];
      groups.set(queue, group);
      group.push(subscription);
    }
    for (const group of groups.values()) {
      const chosen = group[Math.floor(Math.random() * group.length)];
      if (chosen !== undefined) plain.push(chosen);
    }
    return plain;
  }

  *#matching(subject: string): Generator<Subscription<Owner>> {
    yield* this.#literal.get(subject) ?? [];
    if (this.#wild.size === 0) return;
    const tokens = subject.split('.');
    for (const wild of this.#wild.values()) {
      if (matches(wild.tokens, tokens)) yield* wild.subscriptions;
    }
  }

  #setOf(subject: string): Set<Subscription<Owner>> {
    if (!hasWildcard(subject)) {
      const set = this.#literal.get(subject) ?? new Set();
      this.#literal.set(subject, set);
      return set;
    }
    const wild = this.#wild.get(subject) ?? { tokens: subject.split('.'), subscriptions: new Set() };
    this.#wild.set(subject, wild);
    return wild.subscriptions;
  }
}
