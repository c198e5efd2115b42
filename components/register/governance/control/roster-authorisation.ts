import { isWalletAddress } from '#core/crypto/address.ts';
import { sha256 } from '#core/crypto/hash.ts';
import { canonicalBytes } from '#core/encoding/jcs.ts';
import { isAppError } from '#core/errors/errors.ts';
import { decide } from '#core/identity/policies.ts';
import { memberDid } from '#core/ledger/did.ts';
import {
  findRosterEntry,
  findRosterKey,
  type LedgerRules,
  type RosterEntry,
} from '#core/ledger/governance/rules.ts';
import type { Wallets } from '../../clients/wallets.ts';
import { refusal } from '../../errors.ts';
import type { Subject } from '../../registers/state/access.ts';
import type { ControlSigner, WalletSigner } from './submit.ts';

/** A roster member that the caller may act as, with the key that signs for it. */
export interface RosterSigner {
  readonly entry: RosterEntry;
  readonly signer: ControlSigner;
  /**
   * Whether the token or the wallet service confirms that the wallet is the caller's; otherwise only a signature proves
   * it.
   */
  readonly isOwn: boolean;
}

type SignerWallets = Pick<
  Wallets,
  'attestationKeys' | 'organizationWallet' | 'signDigest' | 'subjectWallets'
>;

interface CandidateWallet {
  readonly walletAddress: string;
  readonly derivationContext: string;
  readonly keyAddress: string;
  readonly isOwn: boolean;
}

const weights: Readonly<Record<RosterEntry['role'], number>> = {
  Owner: 0,
  Admin: 1,
  Auditor: 2,
  Designer: 3,
};

/** Callers that are not people have no wallets. */
async function subjectWalletsOf(wallets: SignerWallets, token: string): Promise<string[]> {
  try {
    return (await wallets.subjectWallets(token)).map((key) => key.walletAddress);
  } catch (error) {
    if (isAppError(error, 'forbidden')) return [];
    throw error;
  }
}

/** Wallets that may be the caller's, by their attestation keys: the person's, the token's, the organisation's. */
async function candidateWallets(
  wallets: SignerWallets,
  { caller, token }: Subject,
): Promise<CandidateWallet[]> {
  const { walletAddress, organizationId } = caller;
  const hinted = walletAddress !== undefined && isWalletAddress(walletAddress) ? [walletAddress] : [];
  const own = new Set([...(await subjectWalletsOf(wallets, token)), ...hinted]);
  const shared = organizationId === undefined ? undefined : await wallets.organizationWallet(organizationId);
  const names = [
    ...own,
    ...(shared === undefined || own.has(shared.walletAddress) ? [] : [shared.walletAddress]),
  ];
  const keys = names.length === 0 ? [] : await wallets.attestationKeys(names);
  const known = new Map(keys.map((key) => [key.wallet, key]));
  return names.map((name) => {
    const key = known.get(name);
    const { walletAddress: address = name, derivationContext = '', keyAddress = name } = key ?? {};
    return {
      walletAddress: address,
      derivationContext,
      keyAddress,
      isOwn: own.has(name) && derivationContext === '',
    };
  });
}

/**
 * Where the installation itself is a roster member, as on the system register, its system administrators act for it.
 */
function asInstallation({ caller }: Subject, rules: LedgerRules): RosterSigner[] {
  const entry = findRosterKey(rules, rules.systemKey);
  if (entry === undefined || decide('CanCreateSystemRegisters', caller) !== 'allow') return [];
  return [{ entry, signer: 'system', isOwn: true }];
}

/** The roster members that the caller may be, the most powerful role first. */
async function rosterSignersOf(
  wallets: SignerWallets,
  subject: Subject,
  rules: LedgerRules,
): Promise<RosterSigner[]> {
  const candidates = await candidateWallets(wallets, subject);
  const own = candidates.flatMap(({ keyAddress, walletAddress, derivationContext, isOwn }) => {
    const entry = findRosterEntry(rules, memberDid(keyAddress));
    if (entry === undefined) return [];
    const { publicKey, algorithm } = entry;
    const key = { publicKey, algorithm };
    const signer: WalletSigner = { walletAddress, derivationContext, key, token: subject.token };
    return [{ entry, isOwn, signer }];
  });
  return [...own, ...asInstallation(subject, rules)].toSorted(
    (left, right) => weights[left.entry.role] - weights[right.entry.role],
  );
}

/** Whether the wallet service lets the caller sign for a member. The signed text has no meaning anywhere else. */
async function isProven(
  wallets: SignerWallets,
  candidate: RosterSigner,
  registerId: string,
): Promise<boolean> {
  const { signer, entry, isOwn } = candidate;
  if (isOwn || signer === 'system') return true;
  const { walletAddress, derivationContext, token: subjectToken } = signer;
  const sentence = { domain: 'platform:register-standing:v1', registerId, subject: entry.subject };
  const digest = sha256(canonicalBytes(sentence));
  try {
    const { key } = await wallets.signDigest({ walletAddress, digest, derivationContext, subjectToken });
    return key.publicKey === entry.publicKey;
  } catch (error) {
    if (isAppError(error, 'forbidden') || isAppError(error, 'not_found')) return false;
    throw error;
  }
}

/** The first roster member accepted by `fits` that the caller is proven to be. */
export async function findRosterSigner(
  wallets: SignerWallets,
  subject: Subject,
  rules: LedgerRules,
  fits: (entry: RosterEntry) => boolean,
): Promise<RosterSigner | undefined> {
  const signers = await rosterSignersOf(wallets, subject, rules);
  for (const candidate of signers.filter(({ entry }) => fits(entry))) {
    if (await isProven(wallets, candidate, rules.registerId)) return candidate;
  }
  return undefined;
}

/**
 * The roster member that the caller acts as: the one of `did` if given, else the one with the most powerful role.
 * @throws AppError forbidden NOT_ON_ROSTER when the caller may sign for no such member
 */
export async function resolveSigner(
  wallets: SignerWallets,
  subject: Subject,
  rules: LedgerRules,
  did?: string,
): Promise<RosterSigner> {
  const fits = (entry: RosterEntry) => did === undefined || entry.subject === did;
  const found = await findRosterSigner(wallets, subject, rules, fits);
  if (found === undefined) throw refusal('NOT_ON_ROSTER');
  return found;
}
