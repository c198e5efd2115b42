import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { pods, statefulSets, volumeClaims } from '../../kube/kinds.ts';
import type { Resource } from '../../kube/resource.ts';
import { registers, tenants, validatorSets, watched } from './resources.ts';

const template = fileURLToPath(
  new URL('../../../charts/chancery/templates/operator-rbac.yaml', import.meta.url),
);
/** The rules for the namespaces of installations. */
const rules = /define "operator\.rules"(.*?)\bend\b/s.exec(readFileSync(template, 'utf8'))?.[1] ?? '';

const place = ({ group, plural }: Pick<Resource, 'group' | 'plural'>) => `${group}/${plural}`;
const listOf = (text = ''): readonly string[] => text.split(',').map((each) => each.trim());

/** `verb group/resource` of all permissions in the chart. */
function allowed(): readonly string[] {
  const found = rules.matchAll(/apiGroups: \[(.*?)\], resources: \[(.*?)\], verbs: \[(.*?)\]/g);
  return [...found].flatMap(([, group = '', resources, verbs]) =>
    listOf(resources).flatMap((plural) =>
      listOf(verbs).map((verb) => `${verb} ${place({ group: group.replaceAll('"', ''), plural })}`),
    ),
  );
}

/** The same for all calls of the code. */
function usedPermissions(): readonly string[] {
  const own = [registers, tenants, validatorSets];
  const kinds = watched.map(({ resource }) => resource);
  const children = kinds.filter((each) => ![...own, pods, volumeClaims].includes(each));
  expect(children).toContain(statefulSets);
  const verbs = (all: readonly Resource[], ...of: readonly string[]) =>
    all.flatMap((each) => of.map((verb) => `${verb} ${place(each)}`));
  return [
    ...verbs(kinds, 'list', 'watch'),
    ...verbs(children, 'get', 'create', 'patch', 'delete'),
    ...verbs(own, 'patch'),
    ...own.flatMap((each) => [`patch ${place(each)}/status`, `update ${place(each)}/finalizers`]),
    ...verbs([pods], 'delete'),
    `create ${place(pods)}/eviction`,
    ...verbs([volumeClaims], 'patch', 'delete'),
    'create events.k8s.io/events',
    'patch events.k8s.io/events',
  ];
}

test("the chart's role allows exactly the verbs that the operator uses", () => {
  expect(allowed().toSorted()).toEqual(usedPermissions().toSorted());
});
