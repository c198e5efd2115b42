export const CATEGORIES = [
  'Action',
  'Credential',
  'Membership',
  'Security',
  'System',
  'Workflow',
  'Custom',
] as const;
export type Category = (typeof CATEGORIES)[number];

export const SEVERITIES = ['Info', 'Warning', 'ActionRequired', 'Critical'] as const;
export type Severity = (typeof SEVERITIES)[number];

/** Channels of a notification, in the order of their flags 1, 2 and 4. */
export const CHANNELS = ['Inbox', 'Push', 'Email'] as const;
export type Channel = (typeof CHANNELS)[number];

/** An inbox entry as its writer submits it. */
export interface NewEntry {
  readonly platformUserId: string;
  readonly category: Category;
  readonly severity: Severity;
  /** Groups entries about the same subject. */
  readonly correlationKey: string;
  readonly title: string;
  readonly summary?: string | undefined;
  readonly iconKey?: string | undefined;
  /** Path on the platform, starting with /api/. */
  readonly detailHref?: string | undefined;
  /** Idempotency key, unique per person. */
  readonly sourceEventId: string;
  readonly occurredAtMs: number;
  /** The channels of the category when absent. */
  readonly channelHints?: readonly Channel[] | undefined;
  /** Client id of the service that wrote it. */
  readonly writerServiceId: string;
}

export interface Entry extends NewEntry {
  readonly id: string;
  readonly channelHints: readonly Channel[];
  readonly readAtMs: number | undefined;
  readonly dismissedAtMs: number | undefined;
}

const hints: Readonly<Record<Category, readonly Channel[]>> = {
  Action: ['Inbox', 'Push', 'Email'],
  Security: ['Inbox', 'Push', 'Email'],
  Credential: ['Inbox', 'Push'],
  Membership: ['Inbox', 'Email'],
  System: ['Inbox'],
  Workflow: ['Inbox'],
  Custom: ['Inbox'],
};

export function channelsOf(category: Category): readonly Channel[] {
  return hints[category];
}
