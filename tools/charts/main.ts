// Renews what the chart has from elsewhere: values.yaml and the table in its README from the schema of its values, and the tags of
// the servers' images.
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { renderServerTags } from '../images/servers.ts';
import { renderValues, withTable } from './values.ts';

const at = (name: string): string => fileURLToPath(new URL(`../../charts/chancery/${name}`, import.meta.url));
const schema: unknown = JSON.parse(readFileSync(at('values.schema.json'), 'utf8'));

writeFileSync(at('values.yaml'), renderValues(schema));
writeFileSync(at('README.md'), withTable(readFileSync(at('README.md'), 'utf8'), schema));
writeFileSync(
  at('files/image-tags.json'),
  renderServerTags(fileURLToPath(new URL('../..', import.meta.url))),
);
