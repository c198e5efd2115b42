import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { z } from 'zod';
import { LogicBudget } from '#core/blueprint/logic/budget.ts';
import { compileLogic } from '#core/blueprint/logic/compile.ts';
import { evaluateLogic } from '#core/blueprint/logic/evaluate.ts';
import { someData, typed } from '../../components/core/blueprint/logic/testing/typed-logic.ts';
import { type Counts, script } from './programs.ts';

const suite = new URL('../../components/core/blueprint/logic/vectors/compatible.json', import.meta.url);
const caseSchema = z.object({ description: z.string(), rule: z.unknown(), data: z.unknown().optional() });

/**
 * What the implementation in Python does otherwise. The first member lists cases of the core by their description; the
 * operators are left out of generated logic, and the core judges them.
 */
const differing = {
  // the initial value of a reduction is not evaluated
  cases: [
    '{"reduce":[{"var":"integers"},{"+":[{"var":"current"},{"var":"accumulator"}]},{"var":"start_with"}]}',
  ],
  // the text of a boolean is True or False, a remainder has the sign of the divisor, and no text is in an empty one
  operators: ['cat', '%', 'in'],
} as const;

function isShared(rule: unknown): boolean {
  const text = JSON.stringify(rule);
  return !differing.operators.some((name) => text.includes(`{"${name}":`));
}

function resultOf(rule: unknown, data: unknown): unknown {
  const logic = compileLogic(rule);
  if (logic.kind === 'fault') throw new Error(`${logic.location}: ${logic.message}`);
  return evaluateLogic(logic, data, new LogicBudget());
}

/** Our results for the common core of JSON Logic and for generated logic, judged by an implementation in Python. */
export async function logicAgreement(dir: string, generated: number): Promise<Counts> {
  const known = z.array(z.unknown()).parse(JSON.parse(readFileSync(suite, 'utf8')));
  const core = known.flatMap((one) => (typeof one === 'string' ? [] : [caseSchema.parse(one)]));
  const rules = fc.oneof(typed.number, typed.boolean, typed.text, typed.numbers);
  const made = fc
    .sample(fc.record({ description: fc.constant('generated'), rule: rules, data: someData }), 4 * generated)
    .filter(({ rule }) => isShared(rule))
    .slice(0, generated);
  const lines = [...core, ...made].map(({ description, rule, data = null }) => {
    const differs = differing.cases.some((each) => each === description);
    return JSON.stringify({ rule, data, result: resultOf(rule, data), ...(differs && { differs }) });
  });
  const file = join(dir, 'logic-cases.jsonl');
  writeFileSync(file, `${lines.join('\n')}\n`);
  return script('logic_agreement.py', [file]);
}
