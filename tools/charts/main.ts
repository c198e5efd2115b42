// Renews what is made from the schema of the chart's values: values.yaml and the table in its README.
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { renderValues, withTable } from './values.ts';

const at = (name: string): string => fileURLToPath(new URL(`../../charts/chancery/${name}`, import.meta.url));
const schema: unknown = JSON.parse(readFileSync(at('values.schema.json'), 'utf8'));

writeFileSync(at('values.yaml'), renderValues(schema));
writeFileSync(at('README.md'), withTable(readFileSync(at('README.md'), 'utf8'), schema));
