import { isWalletAddress } from '#core/crypto/address.ts';
import { AppError } from '#core/errors/errors.ts';
import { MAX_ROSTER } from '#core/ledger/control-record.ts';
import type { RosterRole } from '#core/ledger/owner-attestation.ts';
import type { Wallets } from '../../clients/wallets.ts';
import { refusal } from '../../errors.ts';
import type { Subject } from '../state/access.ts';
import type { RequestedMember } from './draft.ts';

/** A member in a request: `walletAddress`, or the `walletId` of a wallet of the wallet service. */
interface MemberName {
  readonly walletAddress?: string | undefined;
  readonly walletId?: string | undefined;
  readonly userId?: string | undefined;
}

export interface RosterRequest {
  readonly owners?: readonly MemberName[] | undefined;
  readonly additionalAdmins?:
    | readonly (MemberName & { readonly role: Exclude<RosterRole, 'Owner'> })[]
    | undefined;
}

interface RequestedWallet {
  readonly wallet: string;
  readonly userId: string | undefined;
  readonly role: RosterRole;
}

type RosterWallets = Pick<Wallets, 'attestationKeys' | 'organizationWallet' | 'subjectWallets'>;

function refuseInput(message: string): never {
  throw new AppError('invalid', 'INVALID_REQUEST', message);
}

function requestedWallet(member: MemberName, role: RosterRole): RequestedWallet {
  const wallet =
    member.walletAddress ?? member.walletId ?? refuseInput('A member of the roster has no wallet.');
  return { wallet, userId: member.userId, role };
}

/**
 * The default owner of a register: the wallet of the token, else the organisation's, else the oldest one the caller may
 * sign with, which a token issued before that wallet does not name.
 */
async function defaultOwner(wallets: RosterWallets, { caller, token }: Subject): Promise<RequestedWallet> {
  const { walletAddress, organizationId } = caller;
  const ofOrganization = async () =>
    organizationId === undefined ? undefined : await wallets.organizationWallet(organizationId);
  const wallet =
    walletAddress ??
    (await ofOrganization())?.walletAddress ??
    (await wallets.subjectWallets(token))[0]?.walletAddress;
  if (wallet === undefined) throw refusal('OWNER_WALLET_REQUIRED');
  return { wallet, userId: caller.platformUserId, role: 'Owner' };
}

/**
 * The members of a new register with their attesting keys. A person's wallet, and an address that the wallet service
 * does not know, attest with their own key; an organisation's wallet attests with the key that it derives.
 */
export async function resolveRoster(
  wallets: RosterWallets,
  subject: Subject,
  request: RosterRequest,
): Promise<RequestedMember[]> {
  const owners = request.owners ?? [];
  const requested = [
    ...(owners.length > 0
      ? owners.map((owner) => requestedWallet(owner, 'Owner'))
      : [await defaultOwner(wallets, subject)]),
    ...(request.additionalAdmins ?? []).map((admin) => requestedWallet(admin, admin.role)),
  ];
  const known = await wallets.attestationKeys([...new Set(requested.map(({ wallet }) => wallet))]);
  const keys = new Map(known.map((key) => [key.wallet, key]));
  const roster = requested.map(({ wallet, userId, role }): RequestedMember => {
    const key = keys.get(wallet);
    if (key === undefined && !isWalletAddress(wallet)) return refuseInput(`There is no wallet ${wallet}.`);
    if (key === undefined) return { walletAddress: wallet, userId, role };
    const { walletAddress, derivationContext, keyAddress } = key;
    const derivedFrom = derivationContext === '' ? undefined : { walletAddress, derivationContext };
    return { walletAddress: keyAddress, derivedFrom, userId, role };
  });
  checkRoster(roster);
  return roster;
}

/** Checks the roster: exactly one owner, no address twice, at most 25 members. */
function checkRoster(roster: readonly RequestedMember[]): void {
  if (roster.filter((member) => member.role === 'Owner').length !== 1)
    refuseInput('A register has exactly one owner.');
  if (roster.length > MAX_ROSTER) refuseInput(`A roster holds ${MAX_ROSTER} members at most.`);
  if (new Set(roster.map((member) => member.walletAddress)).size !== roster.length) {
    refuseInput('Each wallet address may be in the roster once.');
  }
}
