import { sha256Hex } from '#core/crypto/hash.ts';
import { createVerifier, nodeEd25519 } from '#core/crypto/verify.ts';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { canonicalJson } from '#core/encoding/jcs.ts';
import { scanJson, toValue } from '#core/encoding/json.ts';
import { formatLedgerTimestamp } from '#core/encoding/timestamp.ts';
import { type ControlRecord, defaultCryptoPolicy } from '#core/ledger/control-record.ts';
import { applyControls } from '#core/ledger/governance/apply.ts';
import type { ControlContext, ControlTransaction } from '#core/ledger/governance/control.ts';
import { judgeCrypto } from '#core/ledger/governance/policies.ts';
import { genesisRules, type LedgerRules } from '#core/ledger/governance/rules.ts';
import { rulesJson } from '#core/ledger/governance/rules-json.ts';
import { attestationBytes } from '#core/ledger/owner-attestation.ts';
import { parsePolicy } from '#core/ledger/policy.ts';
import { possessionBytes } from '#core/ledger/possession.ts';
import { createRandom, type Random } from '#kit/testing/random.ts';
import { type Cast, createCast, type Person } from './history-cast.ts';
import { type Draft, nextDraft } from './history-drafts.ts';

/** One proposed docket, and its result by the rules of the product. */
interface Step {
  readonly docketNumber: number;
  readonly timestamp: string;
  /** Members of the sealed records, with the payload as text. */
  readonly transactions: readonly unknown[];
  /** Canonical JSON of the rules afterwards; absent when the docket is refused. */
  readonly rules?: string;
  /** The first code when it is refused. */
  readonly code?: string;
}

export interface History {
  readonly seed: number;
  readonly genesis: { readonly payload: unknown; readonly signer: Person['key']; readonly rules: string };
  readonly steps: readonly Step[];
}

const startMicros = 1_795_255_200_000_000n;
const verifier = createVerifier(nodeEd25519());

function controlRecord(random: Random, { people, validatorKeys }: Cast, registerId: string): ControlRecord {
  const at = formatLedgerTimestamp(startMicros);
  const name = 'Loans';
  const third = random.pick(['Admin', 'Auditor'] as const);
  const roles = ['Owner', 'Admin', third, 'Designer'] as const;
  const size = random.whole(1, roles.length);
  const members = validatorKeys.slice(0, random.whole(1, 7));
  return {
    registerId,
    name,
    ...(random.chance(0.5) ? { description: 'Zwölf € \u{1f511}' } : {}),
    purpose: 'General',
    createdAt: at,
    attestations: people.slice(0, size).map(({ did: subject, key, signer }, index) => {
      const role = roles[index] ?? 'Designer';
      const data = { role, subject, registerId, registerName: name, grantedAt: at };
      const digest = Buffer.from(sha256Hex(attestationBytes(data)), 'hex');
      return { role, subject, ...key, grantedAt: at, signature: encodeBase64(signer.signDigest(digest)) };
    }),
    cryptoPolicy: defaultCryptoPolicy(at, random.chance(0.5)),
    registerPolicy: parsePolicy({ validators: { registrationMode: random.pick(['public', 'consent']) } }),
    validators: {
      validators: members.map((holder, index) => {
        const validatorId = `validator-${index}`;
        const facts = { registerId, validatorId, publicKey: holder.key.publicKey };
        return {
          validatorId,
          ...holder.key,
          derivationContext: 'platform:docket-signing',
          status: 'Active' as const,
          authorizedAt: at,
          proofOfPossession: encodeBase64(holder.signer.sign(possessionBytes(facts))),
        };
      }),
      requiredSignatures: members.length,
      version: 1,
    },
  };
}

function transactionOf(draft: Draft, txId: string, createdAt: string): ControlTransaction {
  const { signers, payloadText, ...envelope } = draft;
  return {
    txId,
    type: 'Control',
    ...envelope,
    payload: toValue(scanJson(Buffer.from(payloadText))),
    senderAddress: chanceless(signers).address,
    signers: signers.map(({ key }) => key),
    createdAt,
  };
}

function chanceless<T>(items: readonly T[]): T {
  const [first] = items;
  if (first === undefined) throw new Error('at least one person has to sign');
  return first;
}

function recordOf({ payload: _payload, signers, ...facts }: ControlTransaction, payloadText: string) {
  return { ...facts, signatures: signers, bound: true, payloadText };
}

function step(rules: LedgerRules, drafts: readonly Draft[], context: ControlContext): [Step, LedgerRules] {
  const { docketNumber, timestamp } = context;
  const transactions = drafts.map((draft, index) =>
    transactionOf(draft, sha256Hex(`${docketNumber}/${index}/${timestamp}`), timestamp),
  );
  const strange = transactions
    .flatMap(({ signers }) =>
      judgeCrypto(
        rules.cryptoPolicy,
        signers.map(({ algorithm }) => algorithm),
      ),
    )
    .filter(({ severity }) => severity === 'Error');
  const fold = strange.length > 0 ? { violations: strange } : applyControls(rules, transactions, context);
  const told = transactions.map((one, index) => recordOf(one, drafts[index]?.payloadText ?? ''));
  const common = { docketNumber, timestamp, transactions: told };
  if ('violations' in fold) return [{ ...common, code: fold.violations[0]?.code ?? '' }, rules];
  return [{ ...common, rules: rulesJson(fold.rules) }, fold.rules];
}

/**
 * A random history of one register: most of its transactions are valid, the others are refused, and each docket has its
 * result by the product's rules.
 */
export function createHistory(seed: number, length: number): History {
  const random = createRandom(seed);
  const cast = createCast(random);
  const registerId = Buffer.from(random.bytes(16)).toString('hex');
  const record = controlRecord(random, cast, registerId);
  let rules = genesisRules(record, cast.system.key);
  const genesis = { payload: record, signer: cast.system.key, rules: rulesJson(rules) };
  const steps: Step[] = [];
  let [docketNumber, seconds] = [1, 60];
  for (let index = 0; index < length; index += 1) {
    const timestamp = formatLedgerTimestamp(startMicros + BigInt(seconds) * 1_000_000n);
    const context = { docketNumber, timestamp, verifier };
    const drafts = Array.from({ length: random.chance(0.2) ? 2 : 1 }, () =>
      nextDraft({ random, cast, rules, context }),
    );
    const [taken, after] = step(rules, drafts, context);
    steps.push(taken);
    if (taken.rules !== undefined) docketNumber += 1;
    rules = after;
    seconds += random.chance(0.1) ? 86_400 * random.whole(1, 4) : random.whole(1, 90);
  }
  return { seed, genesis, steps };
}

/** Canonical JSON of histories, one a line. */
export function historiesText(seeds: readonly number[], length: number): string {
  return seeds.map((seed) => `${canonicalJson(createHistory(seed, length))}\n`).join('');
}
