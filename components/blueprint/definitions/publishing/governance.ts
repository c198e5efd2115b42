import type { Caller } from '#core/identity/claims.ts';
import type { Role } from '#core/identity/roles.ts';
import { memberDid } from '#core/ledger/did.ts';
import type { RosterRole } from '#core/ledger/owner-attestation.ts';
import type { RefusalLog } from '#kit/audit/audit.ts';
import type { Registers, Roster } from '../../clients/registers.ts';
import type { Wallets } from '../../clients/wallets.ts';
import { refusal } from '../../errors.ts';
import type { Subject } from '../publications/visibility.ts';

export interface GovernanceDeps {
  readonly registers: Pick<Registers, 'getRoster'>;
  readonly wallets: Wallets;
  readonly refusalLog: Pick<RefusalLog, 'count'>;
}

/** Roles on a roster that may publish, the most powerful first. */
const publishers: readonly RosterRole[] = ['Owner', 'Admin', 'Designer'];
/** Roles in an organisation that may act as its member on a roster. */
const representatives: readonly Role[] = ['SystemAdmin', 'Administrator', 'Designer'];

/** What a caller wants to do with the blueprints of a register, as the audit log names it. */
type Act = 'blueprint.publish' | 'blueprint.amend';

/**
 * DID of the member of a register's roster as which the caller may publish: a wallet that the caller owns, else, for
 * those who act for their organisation, the organisation's wallet. Addresses are compared whole.
 * @throws AppError GOVERNANCE_ROSTER_NOT_SEALED, GOVERNANCE_ROSTER_UNAVAILABLE; PUBLISH_ROLE_REQUIRED, which is reported
 * to the audit log of the caller's organisation
 */
export async function getPublisher(
  deps: GovernanceDeps,
  subject: Subject,
  { registerId, act }: { readonly registerId: string; readonly act: Act },
): Promise<string> {
  const roster = await deps.registers.getRoster(registerId);
  const members = publishersOf(roster);
  const found = members.size === 0 ? undefined : await findMember(deps, subject, members);
  if (found !== undefined) return found;
  report(deps, subject.caller, { registerId, act });
  throw refusal('PUBLISH_ROLE_REQUIRED');
}

function publishersOf(roster: Roster): ReadonlySet<string> {
  return new Set(
    publishers.flatMap((role) => roster.filter((one) => one.role === role).map(({ subject }) => subject)),
  );
}

async function findMember(
  { wallets }: GovernanceDeps,
  { caller, bearer }: Subject,
  members: ReadonlySet<string>,
): Promise<string | undefined> {
  const own = (await wallets.listOwn(bearer)).map(memberDid).find((did) => members.has(did));
  if (own !== undefined) return own;
  const { organizationId, roles } = caller;
  if (organizationId === undefined || !representatives.some((role) => roles.includes(role))) return undefined;
  const shared = await wallets.findOrganizationAddresses(organizationId);
  return shared.map(memberDid).find((did) => members.has(did));
}

function report(
  { refusalLog }: GovernanceDeps,
  { organizationId, platformUserId = '' }: Caller,
  { registerId, act }: { readonly registerId: string; readonly act: Act },
): void {
  if (organizationId === undefined) return;
  const resource = { resourceType: 'register', resourceId: registerId };
  refusalLog.count({
    organizationId,
    action: act,
    reason: 'PUBLISH_ROLE_REQUIRED',
    ...resource,
    platformUserId,
  });
}
