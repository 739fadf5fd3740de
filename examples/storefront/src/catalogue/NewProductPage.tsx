import { useMutation } from '@apollo/client/react';
import { useState } from 'react';
import { useNavigate } from 'react-router';
import { PageHeading } from '../app/PageHeading.tsx';
import { graphql } from '../gql/index.ts';
import { RequireScope } from '../session/RequireScope.tsx';
import { Field } from '../ui/Field.tsx';
import { Form, textIn } from '../ui/Form.tsx';
import { showNotice } from '../ui/notices.ts';
import { currencyName } from './currency.ts';
import { checkDigit } from './ean13.ts';

const CreateProductDocument = graphql(`
  mutation CreateProduct($input: ProductInput!) {
    createProduct(input: $input) {
      id
      pk
      name
    }
  }
`);

/** Adds a product. */
export function NewProductPage() {
  return (
    <RequireScope scope="products:write">
      <NewProduct />
    </RequireScope>
  );
}

function NewProduct() {
  const navigate = useNavigate();
  const [barcode, setBarcode] = useState('');
  const [createProduct] = useMutation(CreateProductDocument, {
    // Its position in each list is unknown, so all lists are evicted.
    update: (cache) => void cache.evict({ id: 'ROOT_QUERY', fieldName: 'products' }),
  });

  const create = async (values: FormData) => {
    const input = {
      name: textIn(values, 'name'),
      barcode: digitsOf(barcode),
      price: textIn(values, 'price').trim(),
    };
    const { data } = await createProduct({ variables: { input } });
    if (!data) return;
    const page = `/products/${data.createProduct.pk}`;
    await navigate(page);
    showNotice(`${data.createProduct.name} is in the catalogue.`, page);
  };

  return (
    <div className="narrow">
      <PageHeading title="New product" />
      <Form submit="Add the product" action={create}>
        <Field name="name" label="Name" autoComplete="off" />
        <Field
          name="barcode"
          label="Barcode (EAN-13)"
          inputMode="numeric"
          autoComplete="off"
          value={barcode}
          onChange={({ target }) => setBarcode(target.value)}
          help={helpWith(digitsOf(barcode))}
        />
        <Field
          name="price"
          label={`Price (${currencyName})`}
          inputMode="decimal"
          autoComplete="off"
          help="Such as 12.50, at most two decimal places."
        />
      </Form>
    </div>
  );
}

/** Removes the spaces and hyphens of printed barcodes. */
function digitsOf(text: string): string {
  return text.replace(/[\s-]/g, '');
}

function helpWith(digits: string): string {
  if (!/^\d*$/.test(digits)) return 'A barcode has digits only.';
  if (digits.length < 12)
    return `Thirteen digits, the last of them a check digit; ${digits.length} so far.`;
  const last = checkDigit(digits.slice(0, 12));
  if (digits.length === 12) return `The thirteenth digit is ${last}.`;
  if (digits.length > 13) return 'A barcode has thirteen digits.';
  return digits.endsWith(last)
    ? 'The check digit is valid.'
    : `The check digit would be ${last}: one of the digits is wrong.`;
}
