import { readFileSync } from 'node:fs';
import { compileSchemas, type JudgePayload } from '#core/blueprint/schemas/compile.ts';

/** Participants of a site permit; raw programs name their wallets so. */
export const roles = ['applicant', 'planning-office', 'safety-board'] as const;
export type Role = (typeof roles)[number];

/** Data of an action. */
export type Data = Readonly<Record<string, unknown>>;

/** What participants read of an action: one group for each. */
interface View {
  readonly readers: readonly Role[];
  readonly data: Data;
}

/** An action of a site permit as a program has it that is written for this definition alone. */
interface Action {
  readonly sender: Role;
  /** Actions whose data the sender needs. */
  readonly prior: readonly number[];
  calculate(payload: Data): Data;
  /** The next action; undefined at the end. */
  next(data: Data): number | undefined;
  /** The readers of rejections and the action to take again; absent when it cannot be rejected. */
  readonly rejection?: { readonly next: number; readonly readers: readonly Role[] };
  views(data: Data): readonly View[];
}

const nothing = () => ({});
const pick = (data: Data, names: readonly string[]): Data =>
  Object.fromEntries(Object.entries(data).filter(([name]) => names.includes(name)));

const apply: Action = {
  sender: 'applicant',
  prior: [],
  calculate: ({ floorAreaM2, hazardous }) => ({
    feeMinor: Math.max(5_000, Number(floorAreaM2) * 25 + (hazardous === true ? 20_000 : 0)),
    riskTier: hazardous === true || Number(floorAreaM2) >= 500 ? 'high' : 'normal',
  }),
  next: ({ riskTier }) => (riskTier === 'high' ? 1 : 2),
  views: (data) => [
    { readers: ['applicant', 'planning-office'], data },
    {
      readers: ['safety-board'],
      data: pick(data, ['siteReference', 'floorAreaM2', 'hazardous', 'riskTier']),
    },
  ],
};

const review: Action = {
  sender: 'safety-board',
  prior: [0],
  calculate: nothing,
  next: () => 2,
  rejection: { next: 0, readers: ['safety-board', 'applicant'] },
  views: (data) => [{ readers: ['safety-board', 'planning-office'], data }],
};

const decide: Action = {
  sender: 'planning-office',
  prior: [0, 1],
  calculate: nothing,
  next: ({ decision }) => (decision === 'approved' ? 3 : undefined),
  views: (data) => [
    { readers: ['planning-office', 'applicant'], data },
    { readers: ['safety-board'], data: pick(data, ['decision']) },
  ],
};

const collect: Action = {
  sender: 'applicant',
  prior: [2],
  calculate: nothing,
  next: () => undefined,
  views: (data) => [{ readers: ['applicant', 'planning-office'], data }],
};

const actions: readonly Action[] = [apply, review, decide, collect];

/** Throws for an unknown action. */
export function actionOf(actionId: number): Action {
  const action = actions[actionId];
  if (action === undefined) throw new RangeError(`there is no action ${actionId}`);
  return action;
}

/** Judges of payloads by action, with the product's schema backend. */
export function compileJudges(): readonly JudgePayload[] {
  const path = new URL('../../../../components/core/blueprint/vectors/site-permit.json', import.meta.url);
  const { actions: defined } = JSON.parse(readFileSync(path, 'utf8'));
  return defined.map(compileSchemas);
}
