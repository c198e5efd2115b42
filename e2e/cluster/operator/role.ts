import { z } from 'zod';
import type { ApiServer } from '../kubectl.ts';

const roleSchema = z.looseObject({
  rules: z.array(
    z.object({ apiGroups: z.array(z.string()), resources: z.array(z.string()), verbs: z.array(z.string()) }),
  ),
});
type Role = z.output<typeof roleSchema>;

/** One verb on one resource that a role allows. */
export interface Permission {
  readonly resource: string;
  readonly verb: string;
}

/** The role of the operator in one namespace, with temporarily removed permissions. */
export interface OperatorRole {
  /** All permissions. */
  readonly permissions: readonly Permission[];
  /** Removes one permission during an action, and restores it in any case. */
  without(permission: Permission, act: () => Promise<void>): Promise<void>;
}

function lacking({ rules, ...role }: Role, { resource, verb }: Permission): Role {
  const left = rules.flatMap((rule) => {
    if (!rule.resources.includes(resource)) return [rule];
    const others = rule.resources.filter((each) => each !== resource);
    const verbs = rule.verbs.filter((each) => each !== verb);
    return [
      { ...rule, resources: others },
      { ...rule, resources: [resource], verbs },
    ].filter((each) => each.resources.length > 0 && each.verbs.length > 0);
  });
  return { ...role, rules: left };
}

/** Reads the role that the chart has created. */
export async function readRole(api: ApiServer, namespace: string): Promise<OperatorRole> {
  const path = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}/roles/chancery-operator`;
  const fullRole = roleSchema.parse((await api.request('GET', path)).body);
  const write = async ({ rules }: Role) => {
    const { status } = await api.request('PATCH', path, { rules }, 'application/merge-patch+json');
    if (status !== 200) throw new Error(`the role of the operator was not changed: ${status}`);
  };
  return {
    permissions: fullRole.rules.flatMap(({ resources, verbs }) =>
      resources.flatMap((resource) => verbs.map((verb) => ({ resource, verb }))),
    ),
    without: async (permission, act) => {
      await write(lacking(fullRole, permission));
      try {
        await act();
      } finally {
        await write(fullRole);
      }
    },
  };
}
