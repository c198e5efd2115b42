/**
 * The only place that names subjects of the bus. A message on a subject is a wake signal without content: there is
 * something new to read.
 */
export const SUBJECTS = {
  /** Rows of the tenant service's revocation log. */
  tenantRevocations: 'doorbell.tenant.revocations',
  /** Principals of the tenant service changed. */
  tenantEvents: 'doorbell.tenant.events',
  /** The tenant service's outbox: inboxes of people. */
  tenantInboxes: 'doorbell.tenant.inboxes',
  /** The wallet service's outbox. */
  walletEvents: 'doorbell.wallet.events',
  /** The register service's outbox: dockets, transactions, registers. */
  registerEvents: 'doorbell.register.events',
  /** The blueprint service's outbox: steps of instances, operations. */
  blueprintEvents: 'doorbell.blueprint.events',
  /** Validators announced themselves or changed their endpoints. */
  validatorDirectory: 'doorbell.register.validators',
} as const;

type Subject = (typeof SUBJECTS)[keyof typeof SUBJECTS];

/** Whether a text is one of the subjects. */
export function isSubject(text: string): text is Subject {
  return Object.values(SUBJECTS).some((subject) => subject === text);
}
