import { writeDisclosure } from '#core/blueprint/disclosure/file.ts';
import { verifyDisclosure } from '#core/blueprint/disclosure/verify.ts';
import type { GroupText } from '#core/blueprint/payload/envelope.ts';
import type { Verifier } from '#core/crypto/verify.ts';
import type { Ledger, SealedProof } from '../clients/ledger.ts';
import type { StepView } from './accumulated-state.ts';

export interface ProofDeps {
  readonly ledger: Pick<Ledger, 'prove'>;
  readonly verifier: Verifier;
}

/** Steps whose files are in one answer, and bytes after which no further step is proven. */
const mostProven = { steps: 32, bytes: 16 * 1024 * 1024 } as const;

interface ProvenViews {
  /** Texts of disclosure files by transaction id. */
  readonly files: ReadonlyMap<string, readonly string[]>;
  readonly warnings: readonly {
    readonly actionId: number;
    readonly code: 'PROOF_UNAVAILABLE' | 'PROOF_OMITTED';
  }[];
}

/**
 * The disclosure files of steps, one for each group that the viewer opened. Every file is verified as a reader
 * verifies it: one that does not is left out, with a warning. The first step is proven whatever its size.
 * @param views with texts
 */
export async function proveViews(
  { ledger, verifier }: ProofDeps,
  registerId: string,
  views: readonly StepView[],
): Promise<ProvenViews> {
  const files = new Map<string, readonly string[]>();
  const warnings: ProvenViews['warnings'][number][] = [];
  let bytes = 0;
  for (const { step, texts, groupIds } of views) {
    if (groupIds.length === 0) continue;
    if (files.size >= mostProven.steps || bytes > mostProven.bytes) {
      warnings.push({ actionId: step.actionId, code: 'PROOF_OMITTED' });
      continue;
    }
    const proof = await ledger.prove(registerId, step.txId);
    const written = texts.flatMap((text) => findFile(proof, text, verifier) ?? []);
    if (written.length < groupIds.length)
      warnings.push({ actionId: step.actionId, code: 'PROOF_UNAVAILABLE' });
    files.set(step.txId, written);
    bytes += written.reduce((sum, file) => sum + file.length, 0);
  }
  return { files, warnings };
}

/** The text of a file that verifies. */
function findFile(proof: SealedProof, group: GroupText, verifier: Verifier): string | undefined {
  const bytes = writeDisclosure({ ...proof, group });
  return 'proven' in verifyDisclosure(bytes, verifier) ? Buffer.from(bytes).toString() : undefined;
}
