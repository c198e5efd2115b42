import type { Blueprint } from '../model/blueprint.ts';
import { errorAt, type Finding } from '../model/finding.ts';
import { flattenSchemas } from '../schemas/flatten.ts';
import { compileWorkflow } from '../steps/workflow.ts';
import { createContext, type Rule } from './context.ts';
import { availability, credentialRules } from './credentials.ts';
import { dataRules } from './data.ts';
import { cycles, openRecipients, referenceFields, routeChoices, starts } from './flow.ts';
import { logicRules } from './logic.ts';
import { knownActions, knownParticipants, legacyMembers, participantForms, uniqueIds } from './names.ts';
import { outputMappings, pointerForms } from './pointers.ts';
import { routingSize } from './routing-size.ts';

export interface JudgeOptions {
  /** Whether a credential service is configured; without one, credential members are refused. */
  readonly credentials: boolean;
}

/** Findings in one answer. */
const MAX_FINDINGS = 500;

const RULES: readonly Rule[] = [
  uniqueIds,
  knownParticipants,
  knownActions,
  participantForms,
  starts,
  routeChoices,
  cycles,
  pointerForms,
  outputMappings,
  dataRules,
  logicRules,
  referenceFields,
  openRecipients,
  availability,
  credentialRules,
  routingSize,
  legacyMembers,
];

function* judge(blueprint: Blueprint, { credentials }: JudgeOptions): Generator<Finding> {
  const flat = flattenSchemas(blueprint);
  yield* flat.findings;
  const context = createContext(flat.blueprint, credentials);
  for (const rule of RULES) yield* rule(context);
}

/**
 * Judges whether a workflow makes sense and can run: every rule of publication. A definition without errors can be
 * published; its schemas and logic compile, its steps can be judged, and the cost of a payload is bounded.
 */
export function judgeBlueprint(blueprint: Blueprint, options: JudgeOptions): Finding[] {
  const findings = [...judge(blueprint, options).take(MAX_FINDINGS)];
  const hasErrors = findings.some(({ severity }) => severity === 'Error');
  if (hasErrors || compileWorkflow(blueprint) !== undefined) return findings;
  return [...findings, errorAt('', 'VAL_BP_WORKFLOW', 'The steps of the workflow cannot be judged')];
}
