import type { KindDefinition } from './kinds.ts';
import { API_GROUP, API_VERSION, CATEGORY } from './names.ts';
import { type StructuralSchema, structuralSchema } from './structural.ts';

/** Name of the CRD of a kind, and of its file. */
export function crdName({ plural }: KindDefinition): string {
  return `${plural}.${API_GROUP}`;
}

function rootSchema(definition: KindDefinition): StructuralSchema {
  return {
    description: definition.description,
    type: 'object',
    required: ['spec'],
    'x-kubernetes-validations': definition.rules,
    properties: {
      apiVersion: { type: 'string' },
      kind: { type: 'string' },
      // declared only so that a rule can refer to it
      metadata: { type: 'object', properties: { name: { type: 'string' } } },
      spec: structuralSchema(definition.spec),
      status: structuralSchema(definition.status),
    },
  };
}

function version(definition: KindDefinition): object {
  const { columns, selectableFields, scale } = definition;
  return {
    name: API_VERSION,
    served: true,
    storage: true,
    additionalPrinterColumns: columns,
    ...(selectableFields.length > 0
      ? { selectableFields: selectableFields.map((jsonPath) => ({ jsonPath })) }
      : {}),
    subresources: { status: {}, ...(scale === undefined ? {} : { scale }) },
    schema: { openAPIV3Schema: rootSchema(definition) },
  };
}

/** The CustomResourceDefinition of a kind. */
export function customResourceDefinition(definition: KindDefinition): object {
  const { kind, plural, singular, shortNames } = definition;
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: crdName(definition) },
    spec: {
      group: API_GROUP,
      scope: 'Namespaced',
      names: { kind, listKind: `${kind}List`, plural, singular, shortNames, categories: [CATEGORY] },
      versions: [version(definition)],
    },
  };
}
