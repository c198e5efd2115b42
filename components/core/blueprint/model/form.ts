import { z } from 'zod';
import { pointer, schema, text } from './values.ts';

const rule = z.strictObject({
  effect: z.enum(['SHOW', 'HIDE', 'ENABLE', 'DISABLE']),
  condition: z.strictObject({ scope: pointer, schema }),
});

/** A control of a form, with the controls inside it. Forms are presentation: nothing is validated by them. */
export const control = z.strictObject({
  type: z.enum([
    'Layout',
    'Label',
    'TextLine',
    'TextArea',
    'Numeric',
    'DateTime',
    'File',
    'Choice',
    'Checkbox',
    'Selection',
  ]),
  title: text(200).optional(),
  scope: pointer.optional(),
  layout: z.enum(['VerticalLayout', 'HorizontalLayout', 'Group', 'Categorization']).optional(),
  properties: z.unknown().optional(),
  /** Of an earlier dialect; only `dataSchemas` validate. */
  schema: z.unknown().optional(),
  get elements() {
    return z.array(control).max(200).optional();
  },
  rule: rule.optional(),
  options: z.unknown().optional(),
});
