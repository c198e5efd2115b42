import { faultTolerance } from '#core/ledger/consensus.ts';
import type { PeerEvidence } from '../../chain/consensus/evidence.ts';
import type { ProvenEvidence } from '../../network/evidence/evidence.ts';

/** A piece of evidence as a status report contains it. */
export interface EvidenceSummary {
  readonly kind: PeerEvidence['kind'];
  readonly validatorIds: readonly string[];
  readonly height: number;
  readonly seenAtMs: number;
}

/** Summarises the evidence of one register. */
export function summarise(known: readonly ProvenEvidence[]): readonly EvidenceSummary[] {
  return known.map(({ evidence, validatorIds, height, seenAtMs }) => {
    return { kind: evidence.kind, validatorIds, height, seenAtMs };
  });
}

/** The evidence in one member's report, and whether that member is this validator. */
interface MemberEvidence {
  readonly isOwn: boolean;
  readonly evidence: readonly EvidenceSummary[];
}

const reasons = {
  'duplicate-proposal': 'DuplicateProposal',
  'duplicate-vote': 'DuplicateVote',
  'conflicting-certificate': 'ConflictingCertificate',
} as const satisfies Record<PeerEvidence['kind'], string>;

interface Equivocation {
  readonly validatorId: string;
  readonly kind: PeerEvidence['kind'];
  readonly height: number;
  readonly sinceMs: number;
}

/**
 * The members with proven equivocations, each once, by its earliest evidence. Summaries of other members count when more
 * members report them than the set tolerates to be faulty, so that one of them is honest.
 */
function equivocations(memberEvidence: readonly MemberEvidence[], setSize: number): readonly Equivocation[] {
  const said = new Map<string, { by: number; isOwn: boolean; first: Equivocation }>();
  for (const { isOwn, evidence } of memberEvidence) {
    const mine = new Map<string, Equivocation>();
    for (const { validatorIds, kind, height, seenAtMs } of evidence) {
      for (const validatorId of validatorIds) {
        const each = { validatorId, kind, height, sinceMs: seenAtMs };
        mine.set(validatorId, earlier(mine.get(validatorId), each));
      }
    }
    for (const [validatorId, each] of mine) {
      const known = said.get(validatorId);
      const by = (known?.by ?? 0) + 1;
      const first = earlier(known?.first, each);
      said.set(validatorId, { by, isOwn: isOwn || known?.isOwn === true, first });
    }
  }
  return [...said.values()]
    .filter(({ by, isOwn }) => isOwn || by > faultTolerance(setSize))
    .map(({ first }) => first)
    .toSorted((a, b) => (a.validatorId < b.validatorId ? -1 : 1));
}

function earlier(a: Equivocation | undefined, b: Equivocation): Equivocation {
  if (a === undefined || b.height < a.height) return b;
  return b.height === a.height && b.sinceMs < a.sinceMs ? b : a;
}

/** The condition EquivocationDetected of a register and of each member concerned. */
export function equivocationConditions(memberEvidence: readonly MemberEvidence[], setSize: number) {
  const found = equivocations(memberEvidence, setSize);
  const [first] = found.toSorted((a, b) => a.height - b.height);
  const ofMember = (validatorId: string) =>
    found.filter((each) => each.validatorId === validatorId).map(conditionOf);
  const validatorIds = found.map(({ validatorId }) => validatorId);
  return {
    ofRegister: first === undefined ? [] : [{ ...conditionOf(first), validatorIds }],
    ofMember,
  };
}

function conditionOf({ validatorId, kind, height, sinceMs }: Equivocation) {
  const reason = reasons[kind];
  const what = kind === 'conflicting-certificate' ? 'two certificates' : 'two conflicting messages';
  return {
    type: 'EquivocationDetected' as const,
    status: 'True' as const,
    reason,
    message: `${validatorId} signed ${what} at docket ${height}`,
    since: new Date(sinceMs).toISOString(),
  };
}
