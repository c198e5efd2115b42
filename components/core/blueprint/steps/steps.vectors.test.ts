import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../encoding/json.ts';
import { judgeStep, type Predecessor, type StepContext, type StepRecord } from './judge.ts';
import { vectorsText } from './testing/vectors-text.ts';
import { compileWorkflow } from './workflow.ts';

type VectorRecord = StepRecord & { readonly txId: string };

interface Vectors {
  readonly pin: string;
  readonly walks: readonly {
    readonly definition: JsonObject;
    /** Steps that follow one another; `now` is the time of the docket, ticks of 100 ns. */
    readonly steps: readonly (VectorRecord & { readonly now: string })[];
    readonly spoilt: readonly {
      readonly at: number;
      /** Members of the record that are changed. */
      readonly change: Partial<StepRecord>;
      readonly now?: string;
      readonly isPinKnown?: false;
      readonly code: string | null;
    }[];
  }[];
  readonly definitions: readonly { readonly text: string; readonly compiles: boolean }[];
}

const vectors: Vectors = JSON.parse(readFileSync(new URL('../vectors/steps.json', import.meta.url), 'utf8'));

function predecessorOf(before: VectorRecord | undefined): Predecessor {
  if (before === undefined) return { txId: vectors.pin, type: 'Control' };
  return { txId: before.txId, type: before.type, routing: before.metadata?.['routing'] };
}

function codeOf(record: StepRecord, context: StepContext): string | null {
  return judgeStep(record, context)[0]?.code ?? null;
}

// e2e/independent/workflow_vectors.py judges the same file.
describe('vectors of steps', () => {
  it('are those of the walks that the tests draw; vitest -u writes them anew', {
    timeout: 60_000,
  }, async () => {
    await expect(vectorsText()).toMatchFileSnapshot('../vectors/steps.json');
  });

  it('have walks, refusals by every code, and definitions of both kinds', () => {
    const codes = vectors.walks.flatMap(({ spoilt }) => spoilt.map(({ code }) => code));
    for (const code of ['VAL_BP_001', 'VAL_BP_002', 'VAL_BP_003', 'VAL_BP_VERSION_001', null]) {
      expect(codes).toContain(code);
    }
    expect(vectors.walks.length).toBeGreaterThan(10);
    expect(new Set(vectors.definitions.map(({ compiles }) => compiles))).toEqual(new Set([true, false]));
  });

  it.each(vectors.walks)('of walk %$', ({ definition, steps, spoilt }) => {
    const workflow = compileWorkflow(definition);
    steps.forEach((record, at) => {
      const context = {
        workflow,
        isPinKnown: true,
        predecessor: predecessorOf(steps[at - 1]),
        nowTicks: BigInt(record.now),
      };
      expect(codeOf(record, context)).toBeNull();
    });
    for (const { at, change, now, isPinKnown = true, code } of spoilt) {
      const step = steps[at] ?? expect.unreachable();
      const nowTicks = BigInt(now ?? step.now);
      const context = { workflow, isPinKnown, predecessor: predecessorOf(steps[at - 1]), nowTicks };
      expect(codeOf({ ...step, ...change }, context), JSON.stringify({ at, change })).toBe(code);
    }
  });

  it('of definitions', () => {
    for (const { text, compiles } of vectors.definitions) {
      expect(compileWorkflow(JSON.parse(text)) !== undefined, text).toBe(compiles);
    }
  });
});
