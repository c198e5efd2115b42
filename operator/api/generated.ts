import { admissionObjects, admissions } from './admission.ts';
import { crdName, customResourceDefinition } from './crd.ts';
import { KINDS } from './kinds.ts';
import { referencePage } from './reference.ts';
import { toYaml } from './yaml.ts';

const HEADER = '# Made by "make gen" from operator/api; edit there.\n';
/** Without spaces, so that folding of long texts never splits it. */
const GROUPS_OF_CHART = '{{.Values.systemRegisterGroups|toJson}}';
const KEEP = { 'helm.sh/resource-policy': 'keep' };

function document(objects: readonly object[]): string {
  return HEADER + objects.map(toYaml).join('---\n');
}

/** Adds the annotation with which Helm keeps an object when the chart is uninstalled. */
function withKeepPolicy(crd: object): object {
  const { apiVersion, kind, metadata, ...rest } = crd as {
    apiVersion: string;
    kind: string;
    metadata: object;
  };
  return { apiVersion, kind, metadata: { ...metadata, annotations: KEEP }, ...rest };
}

/** Every generated file, by its path from the root of the repository. */
export function generatedFiles(): ReadonlyMap<string, string> {
  const files = new Map<string, string>();
  for (const definition of KINDS) {
    const crd = customResourceDefinition(definition);
    files.set(`crds/${crdName(definition)}.yaml`, document([crd]));
    files.set(`charts/chancery-crds/templates/${definition.plural}.yaml`, document([withKeepPolicy(crd)]));
  }
  files.set('crds/admission.yaml', document(admissions().flatMap(admissionObjects)));
  const forChart = document(admissions(GROUPS_OF_CHART).flatMap(admissionObjects));
  files.set('charts/chancery-crds/templates/admission.yaml', forChart);
  files.set('crds/README.md', referencePage());
  return files;
}
