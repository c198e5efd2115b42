import { CONDITIONS } from './conditions.ts';
import type { KindDefinition } from './kinds.ts';
import { KINDS } from './kinds.ts';
import { annotations } from './names.ts';
import { REASONS } from './reasons.ts';

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

function columnsOf({ columns }: KindDefinition, isWide: boolean): string {
  return columns
    .filter((each) => (each.priority === 1) === isWide)
    .map((each) => each.name.toUpperCase())
    .join(', ');
}

const INTRODUCTION = `# Custom resources

Made by \`make gen\` from \`operator/api\`; edit there. \`kubectl explain register.spec\` (\`vset\`, \`tenant\`) explains every field,
\`charts/chancery/samples\` has one object of each kind, \`kubectl get chancery\` lists them all.`;

const ANNOTATIONS: Readonly<Record<keyof typeof annotations, string>> = {
  paused: '`"true"`: reconciliation is paused',
  forceDelete: "the object's uid: it is deleted without cleanup; needs the RBAC verb `force-delete`",
  reconcileAt: 'any new value: reconcile now',
  allowDowngrade: '`"true"` on a ValidatorSet: a version below the running one is accepted',
  confirmDelete:
    'the register id, on a Register: it may be deleted although other installations replicate it',
  forceRoll: "the pod's uid, on a pod: it is replaced although a gate refuses",
};

/** The reference page of the kinds: columns, annotations, conditions, and reasons with their remedies. */
export function referencePage(): string {
  const kinds = KINDS.map((each) => [
    each.kind,
    each.shortNames.map((name) => `\`${name}\``).join(', '),
    columnsOf(each, false),
    columnsOf(each, true),
  ]);
  const known = (Object.keys(annotations) as (keyof typeof annotations)[]).map((name) => [
    `\`${annotations[name]}\``,
    ANNOTATIONS[name],
  ]);
  const conditions = Object.entries(CONDITIONS).map(([type, { meaning, kinds: of, shown }]) => [
    type,
    of.join(', '),
    shown === 'always' ? 'always' : 'while true',
    meaning,
  ]);
  const reasons = Object.entries(REASONS).map(([name, { meaning, remedy }]) => [name, meaning, remedy]);
  const parts = [
    INTRODUCTION,
    table(['Kind', 'Short', 'Columns', 'With -o wide'], kinds),
    `## Annotations\n\n${table(['Annotation', 'Meaning'], known)}`,
    `## Conditions\n\n${table(['Type', 'Of', 'Shown', 'When it is True'], conditions)}`,
    `## Reasons\n\n${table(['Reason', 'Meaning', 'What to do'], reasons)}`,
  ];
  return `${parts.join('\n\n')}\n`;
}
