import { readFileSync } from 'node:fs';

/** The text of the example. */
export const exampleText = readFileSync(new URL('../../vectors/site-permit.json', import.meta.url), 'utf8');

/** A fresh copy of the example, of any shape. */
export const example = () => JSON.parse(exampleText);

export type Definition = ReturnType<typeof example>;

/** Copies of the example with one fault each: what is found, and how the fault is made. */
export type Spoilt = Readonly<
  Record<string, readonly [findings: readonly string[], spoil: (definition: Definition) => unknown]>
>;

/** Participants whose roles are open. */
export const openParticipants = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ id: `open-${index}`, name: 'Open' }));

/** An action with one route. */
export const branch = (id: number, next: readonly number[], more: object = {}) => ({
  id,
  title: 'Branch',
  sender: 'applicant',
  disclosures: [{ participantAddress: 'applicant', dataPointers: ['/*'] }],
  routes: [{ id: `to-${next.join('-')}`, nextActionIds: next, isDefault: true, ...more }],
});

/** A fan-out in each branch of a fan-out, with long ids of routes. */
export const nestedFanOuts = (depth: number) =>
  Array.from({ length: depth }, (_, level) => [
    branch(10 + 2 * level, [12 + 2 * level, 13 + 2 * level], { id: `r${'x'.repeat(90)}${level}` }),
    branch(13 + 2 * level, []),
  ]).flat();
