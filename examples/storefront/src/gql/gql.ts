/* eslint-disable */
import * as types from './graphql';
import type { TypedDocumentNode as DocumentNode } from '@graphql-typed-document-node/core';

/**
 * Map of all GraphQL operations in the project.
 *
 * This map has several performance disadvantages:
 * 1. It is not tree-shakeable, so it will include all operations in the project.
 * 2. It is not minifiable, so the string of a GraphQL query will be multiple times inside the bundle.
 * 3. It does not support dead code elimination, so it will add unused operations.
 *
 * Therefore it is highly recommended to use the babel or swc plugin for production.
 * Learn more about it here: https://the-guild.dev/graphql/codegen/plugins/presets/preset-client#reducing-bundle-size
 */
type Documents = {
    "\n  query Account($itemsAfter: String) {\n    me {\n      id\n      ...Profile\n      ...Items\n      ...Sessions\n    }\n  }\n": typeof types.AccountDocument,
    "\n  fragment ItemRow on Item {\n    id\n    itemId\n    createdAt\n  }\n": typeof types.ItemRowFragmentDoc,
    "\n  mutation RemoveItem($itemId: String!) {\n    removeItem(itemId: $itemId) {\n      __typename\n      id\n    }\n  }\n": typeof types.RemoveItemDocument,
    "\n  fragment Items on User {\n    id\n    items(first: 50, after: $itemsAfter) {\n      edges {\n        cursor\n        node {\n          id\n          ...ItemRow\n        }\n      }\n      pageInfo {\n        hasNextPage\n        endCursor\n      }\n    }\n  }\n": typeof types.ItemsFragmentDoc,
    "\n  fragment Profile on User {\n    id\n    username\n    fullName\n    email\n    scopes\n  }\n": typeof types.ProfileFragmentDoc,
    "\n  fragment SessionRow on Session {\n    __typename\n    id\n    current\n    userAgent\n    createdAt\n    lastSeenAt\n  }\n": typeof types.SessionRowFragmentDoc,
    "\n  mutation EndSession($id: ID!) {\n    endSession(id: $id) {\n      ended\n    }\n  }\n": typeof types.EndSessionDocument,
    "\n  fragment Sessions on User {\n    id\n    sessions(first: 50) {\n      edges {\n        node {\n          id\n          ...SessionRow\n        }\n      }\n    }\n  }\n": typeof types.SessionsFragmentDoc,
    "\n  mutation LogoutEverywhere {\n    logoutEverywhere {\n      ended\n    }\n  }\n": typeof types.LogoutEverywhereDocument,
    "\n  mutation AddItem($itemId: String!) {\n    addItem(itemId: $itemId) {\n      __typename\n      id\n      itemId\n      createdAt\n    }\n  }\n": typeof types.AddItemDocument,
    "\n  query Blog($after: String) {\n    blog(first: 10, after: $after) {\n      edges {\n        cursor\n        node {\n          id\n          ...EntryCard\n        }\n      }\n      pageInfo {\n        hasNextPage\n        endCursor\n      }\n    }\n  }\n": typeof types.BlogDocument,
    "\n  mutation UpdateBlogEntry($id: ID!, $input: BlogEntryPatch!) {\n    updateBlogEntry(id: $id, input: $input) {\n      id\n      title\n      body\n      updatedAt\n    }\n  }\n": typeof types.UpdateBlogEntryDocument,
    "\n  mutation PublishBlogEntry($id: ID!, $published: Boolean!) {\n    updateBlogEntry(id: $id, input: { published: $published }) {\n      id\n      published\n      updatedAt\n    }\n  }\n": typeof types.PublishBlogEntryDocument,
    "\n  mutation DeleteBlogEntry($id: ID!) {\n    deleteBlogEntry(id: $id) {\n      __typename\n      id\n    }\n  }\n": typeof types.DeleteBlogEntryDocument,
    "\n  fragment EntryByline on BlogEntry {\n    id\n    published\n    createdAt\n    creator {\n      id\n      username\n      fullName\n    }\n  }\n": typeof types.EntryBylineFragmentDoc,
    "\n  fragment EntryCard on BlogEntry {\n    id\n    title\n    body\n    ...EntryByline\n  }\n": typeof types.EntryCardFragmentDoc,
    "\n  mutation CreateBlogEntry($input: BlogEntryInput!) {\n    createBlogEntry(input: $input) {\n      id\n      title\n    }\n  }\n": typeof types.CreateBlogEntryDocument,
    "\n  query Entry($id: ID!) {\n    node(id: $id) {\n      __typename\n      id\n      ... on BlogEntry {\n        title\n        body\n        published\n        creator {\n          id\n        }\n        ...EntryByline\n      }\n    }\n  }\n": typeof types.EntryDocument,
    "\n  query Catalogue($filter: ProductFilter, $orderBy: ProductOrder!, $after: String) {\n    products(first: 24, after: $after, filter: $filter, orderBy: $orderBy) {\n      totalCount\n      edges {\n        cursor\n        node {\n          pk\n          ...ProductCard\n        }\n      }\n      pageInfo {\n        hasNextPage\n        endCursor\n      }\n    }\n  }\n": typeof types.CatalogueDocument,
    "\n  mutation CreateProduct($input: ProductInput!) {\n    createProduct(input: $input) {\n      id\n      pk\n      name\n    }\n  }\n": typeof types.CreateProductDocument,
    "\n  fragment ProductCard on Product {\n    id\n    pk\n    name\n    price\n  }\n": typeof types.ProductCardFragmentDoc,
    "\n  query Product($pk: ID!) {\n    product(pk: $pk) {\n      id\n      pk\n      name\n      price\n      barcode\n      createdAt\n      updatedAt\n    }\n  }\n": typeof types.ProductDocument,
    "\n  subscription ProductChanged($after: String) {\n    productChanged(kinds: [CHANGED, BULK], after: $after) {\n      cursor\n      product {\n        __typename\n        id\n        name\n        price\n        barcode\n        updatedAt\n      }\n    }\n  }\n": typeof types.ProductChangedDocument,
    "\n  mutation ConfirmRegistration($input: ConfirmationInput!) {\n    confirmRegistration(input: $input) {\n      id\n      username\n    }\n  }\n": typeof types.ConfirmRegistrationDocument,
    "\n  mutation ResetPassword($token: String!, $new: String!) {\n    resetPassword(token: $token, new: $new) {\n      id\n      username\n    }\n  }\n": typeof types.ResetPasswordDocument,
    "\n  mutation Login($username: String!, $password: String!) {\n    login(username: $username, password: $password) {\n      accessToken\n      refreshToken\n      user {\n        id\n        ...Viewer\n      }\n    }\n  }\n": typeof types.LoginDocument,
    "\n  mutation Logout {\n    logout {\n      ended\n    }\n  }\n": typeof types.LogoutDocument,
    "\n  mutation Refresh($refreshToken: String!) {\n    refresh(refreshToken: $refreshToken) {\n      accessToken\n      refreshToken\n    }\n  }\n": typeof types.RefreshDocument,
    "\n  fragment Viewer on User {\n    id\n    username\n    fullName\n    scopes\n  }\n": typeof types.ViewerFragmentDoc,
    "\n  query Viewer {\n    me {\n      id\n      ...Viewer\n    }\n  }\n": typeof types.ViewerDocument,
};
const documents: Documents = {
    "\n  query Account($itemsAfter: String) {\n    me {\n      id\n      ...Profile\n      ...Items\n      ...Sessions\n    }\n  }\n": types.AccountDocument,
    "\n  fragment ItemRow on Item {\n    id\n    itemId\n    createdAt\n  }\n": types.ItemRowFragmentDoc,
    "\n  mutation RemoveItem($itemId: String!) {\n    removeItem(itemId: $itemId) {\n      __typename\n      id\n    }\n  }\n": types.RemoveItemDocument,
    "\n  fragment Items on User {\n    id\n    items(first: 50, after: $itemsAfter) {\n      edges {\n        cursor\n        node {\n          id\n          ...ItemRow\n        }\n      }\n      pageInfo {\n        hasNextPage\n        endCursor\n      }\n    }\n  }\n": types.ItemsFragmentDoc,
    "\n  fragment Profile on User {\n    id\n    username\n    fullName\n    email\n    scopes\n  }\n": types.ProfileFragmentDoc,
    "\n  fragment SessionRow on Session {\n    __typename\n    id\n    current\n    userAgent\n    createdAt\n    lastSeenAt\n  }\n": types.SessionRowFragmentDoc,
    "\n  mutation EndSession($id: ID!) {\n    endSession(id: $id) {\n      ended\n    }\n  }\n": types.EndSessionDocument,
    "\n  fragment Sessions on User {\n    id\n    sessions(first: 50) {\n      edges {\n        node {\n          id\n          ...SessionRow\n        }\n      }\n    }\n  }\n": types.SessionsFragmentDoc,
    "\n  mutation LogoutEverywhere {\n    logoutEverywhere {\n      ended\n    }\n  }\n": types.LogoutEverywhereDocument,
    "\n  mutation AddItem($itemId: String!) {\n    addItem(itemId: $itemId) {\n      __typename\n      id\n      itemId\n      createdAt\n    }\n  }\n": types.AddItemDocument,
    "\n  query Blog($after: String) {\n    blog(first: 10, after: $after) {\n      edges {\n        cursor\n        node {\n          id\n          ...EntryCard\n        }\n      }\n      pageInfo {\n        hasNextPage\n        endCursor\n      }\n    }\n  }\n": types.BlogDocument,
    "\n  mutation UpdateBlogEntry($id: ID!, $input: BlogEntryPatch!) {\n    updateBlogEntry(id: $id, input: $input) {\n      id\n      title\n      body\n      updatedAt\n    }\n  }\n": types.UpdateBlogEntryDocument,
    "\n  mutation PublishBlogEntry($id: ID!, $published: Boolean!) {\n    updateBlogEntry(id: $id, input: { published: $published }) {\n      id\n      published\n      updatedAt\n    }\n  }\n": types.PublishBlogEntryDocument,
    "\n  mutation DeleteBlogEntry($id: ID!) {\n    deleteBlogEntry(id: $id) {\n      __typename\n      id\n    }\n  }\n": types.DeleteBlogEntryDocument,
    "\n  fragment EntryByline on BlogEntry {\n    id\n    published\n    createdAt\n    creator {\n      id\n      username\n      fullName\n    }\n  }\n": types.EntryBylineFragmentDoc,
    "\n  fragment EntryCard on BlogEntry {\n    id\n    title\n    body\n    ...EntryByline\n  }\n": types.EntryCardFragmentDoc,
    "\n  mutation CreateBlogEntry($input: BlogEntryInput!) {\n    createBlogEntry(input: $input) {\n      id\n      title\n    }\n  }\n": types.CreateBlogEntryDocument,
    "\n  query Entry($id: ID!) {\n    node(id: $id) {\n      __typename\n      id\n      ... on BlogEntry {\n        title\n        body\n        published\n        creator {\n          id\n        }\n        ...EntryByline\n      }\n    }\n  }\n": types.EntryDocument,
    "\n  query Catalogue($filter: ProductFilter, $orderBy: ProductOrder!, $after: String) {\n    products(first: 24, after: $after, filter: $filter, orderBy: $orderBy) {\n      totalCount\n      edges {\n        cursor\n        node {\n          pk\n          ...ProductCard\n        }\n      }\n      pageInfo {\n        hasNextPage\n        endCursor\n      }\n    }\n  }\n": types.CatalogueDocument,
    "\n  mutation CreateProduct($input: ProductInput!) {\n    createProduct(input: $input) {\n      id\n      pk\n      name\n    }\n  }\n": types.CreateProductDocument,
    "\n  fragment ProductCard on Product {\n    id\n    pk\n    name\n    price\n  }\n": types.ProductCardFragmentDoc,
    "\n  query Product($pk: ID!) {\n    product(pk: $pk) {\n      id\n      pk\n      name\n      price\n      barcode\n      createdAt\n      updatedAt\n    }\n  }\n": types.ProductDocument,
    "\n  subscription ProductChanged($after: String) {\n    productChanged(kinds: [CHANGED, BULK], after: $after) {\n      cursor\n      product {\n        __typename\n        id\n        name\n        price\n        barcode\n        updatedAt\n      }\n    }\n  }\n": types.ProductChangedDocument,
    "\n  mutation ConfirmRegistration($input: ConfirmationInput!) {\n    confirmRegistration(input: $input) {\n      id\n      username\n    }\n  }\n": types.ConfirmRegistrationDocument,
    "\n  mutation ResetPassword($token: String!, $new: String!) {\n    resetPassword(token: $token, new: $new) {\n      id\n      username\n    }\n  }\n": types.ResetPasswordDocument,
    "\n  mutation Login($username: String!, $password: String!) {\n    login(username: $username, password: $password) {\n      accessToken\n      refreshToken\n      user {\n        id\n        ...Viewer\n      }\n    }\n  }\n": types.LoginDocument,
    "\n  mutation Logout {\n    logout {\n      ended\n    }\n  }\n": types.LogoutDocument,
    "\n  mutation Refresh($refreshToken: String!) {\n    refresh(refreshToken: $refreshToken) {\n      accessToken\n      refreshToken\n    }\n  }\n": types.RefreshDocument,
    "\n  fragment Viewer on User {\n    id\n    username\n    fullName\n    scopes\n  }\n": types.ViewerFragmentDoc,
    "\n  query Viewer {\n    me {\n      id\n      ...Viewer\n    }\n  }\n": types.ViewerDocument,
};

/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 *
 *
 * @example
 * ```ts
 * const query = graphql(`query GetUser($id: ID!) { user(id: $id) { name } }`);
 * ```
 *
 * The query argument is unknown!
 * Please regenerate the types.
 */
export function graphql(source: string): unknown;

/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  query Account($itemsAfter: String) {\n    me {\n      id\n      ...Profile\n      ...Items\n      ...Sessions\n    }\n  }\n"): (typeof documents)["\n  query Account($itemsAfter: String) {\n    me {\n      id\n      ...Profile\n      ...Items\n      ...Sessions\n    }\n  }\n"];
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  fragment ItemRow on Item {\n    id\n    itemId\n    createdAt\n  }\n"): (typeof documents)["\n  fragment ItemRow on Item {\n    id\n    itemId\n    createdAt\n  }\n"];
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  mutation RemoveItem($itemId: String!) {\n    removeItem(itemId: $itemId) {\n      __typename\n      id\n    }\n  }\n"): (typeof documents)["\n  mutation RemoveItem($itemId: String!) {\n    removeItem(itemId: $itemId) {\n      __typename\n      id\n    }\n  }\n"];
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  fragment Items on User {\n    id\n    items(first: 50, after: $itemsAfter) {\n      edges {\n        cursor\n        node {\n          id\n          ...ItemRow\n        }\n      }\n      pageInfo {\n        hasNextPage\n        endCursor\n      }\n    }\n  }\n"): (typeof documents)["\n  fragment Items on User {\n    id\n    items(first: 50, after: $itemsAfter) {\n      edges {\n        cursor\n        node {\n          id\n          ...ItemRow\n        }\n      }\n      pageInfo {\n        hasNextPage\n        endCursor\n      }\n    }\n  }\n"];
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  fragment Profile on User {\n    id\n    username\n    fullName\n    email\n    scopes\n  }\n"): (typeof documents)["\n  fragment Profile on User {\n    id\n    username\n    fullName\n    email\n    scopes\n  }\n"];
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  fragment SessionRow on Session {\n    __typename\n    id\n    current\n    userAgent\n    createdAt\n    lastSeenAt\n  }\n"): (typeof documents)["\n  fragment SessionRow on Session {\n    __typename\n    id\n    current\n    userAgent\n    createdAt\n    lastSeenAt\n  }\n"];
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  mutation EndSession($id: ID!) {\n    endSession(id: $id) {\n      ended\n    }\n  }\n"): (typeof documents)["\n  mutation EndSession($id: ID!) {\n    endSession(id: $id) {\n      ended\n    }\n  }\n"];
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  fragment Sessions on User {\n    id\n    sessions(first: 50) {\n      edges {\n        node {\n          id\n          ...SessionRow\n        }\n      }\n    }\n  }\n"): (typeof documents)["\n  fragment Sessions on User {\n    id\n    sessions(first: 50) {\n      edges {\n        node {\n          id\n          ...SessionRow\n        }\n      }\n    }\n  }\n"];
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  mutation LogoutEverywhere {\n    logoutEverywhere {\n      ended\n    }\n  }\n"): (typeof documents)["\n  mutation LogoutEverywhere {\n    logoutEverywhere {\n      ended\n    }\n  }\n"];
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  mutation AddItem($itemId: String!) {\n    addItem(itemId: $itemId) {\n      __typename\n      id\n      itemId\n      createdAt\n    }\n  }\n"): (typeof documents)["\n  mutation AddItem($itemId: String!) {\n    addItem(itemId: $itemId) {\n      __typename\n      id\n      itemId\n      createdAt\n    }\n  }\n"];
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  query Blog($after: String) {\n    blog(first: 10, after: $after) {\n      edges {\n        cursor\n        node {\n          id\n          ...EntryCard\n        }\n      }\n      pageInfo {\n        hasNextPage\n        endCursor\n      }\n    }\n  }\n"): (typeof documents)["\n  query Blog($after: String) {\n    blog(first: 10, after: $after) {\n      edges {\n        cursor\n        node {\n          id\n          ...EntryCard\n        }\n      }\n      pageInfo {\n        hasNextPage\n        endCursor\n      }\n    }\n  }\n"];
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  mutation UpdateBlogEntry($id: ID!, $input: BlogEntryPatch!) {\n    updateBlogEntry(id: $id, input: $input) {\n      id\n      title\n      body\n      updatedAt\n    }\n  }\n"): (typeof documents)["\n  mutation UpdateBlogEntry($id: ID!, $input: BlogEntryPatch!) {\n    updateBlogEntry(id: $id, input: $input) {\n      id\n      title\n      body\n      updatedAt\n    }\n  }\n"];
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  mutation PublishBlogEntry($id: ID!, $published: Boolean!) {\n    updateBlogEntry(id: $id, input: { published: $published }) {\n      id\n      published\n      updatedAt\n    }\n  }\n"): (typeof documents)["\n  mutation PublishBlogEntry($id: ID!, $published: Boolean!) {\n    updateBlogEntry(id: $id, input: { published: $published }) {\n      id\n      published\n      updatedAt\n    }\n  }\n"];
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  mutation DeleteBlogEntry($id: ID!) {\n    deleteBlogEntry(id: $id) {\n      __typename\n      id\n    }\n  }\n"): (typeof documents)["\n  mutation DeleteBlogEntry($id: ID!) {\n    deleteBlogEntry(id: $id) {\n      __typename\n      id\n    }\n  }\n"];
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  fragment EntryByline on BlogEntry {\n    id\n    published\n    createdAt\n    creator {\n      id\n      username\n      fullName\n    }\n  }\n"): (typeof documents)["\n  fragment EntryByline on BlogEntry {\n    id\n    published\n    createdAt\n    creator {\n      id\n      username\n      fullName\n    }\n  }\n"];
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  fragment EntryCard on BlogEntry {\n    id\n    title\n    body\n    ...EntryByline\n  }\n"): (typeof documents)["\n  fragment EntryCard on BlogEntry {\n    id\n    title\n    body\n    ...EntryByline\n  }\n"];
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  mutation CreateBlogEntry($input: BlogEntryInput!) {\n    createBlogEntry(input: $input) {\n      id\n      title\n    }\n  }\n"): (typeof documents)["\n  mutation CreateBlogEntry($input: BlogEntryInput!) {\n    createBlogEntry(input: $input) {\n      id\n      title\n    }\n  }\n"];
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  query Entry($id: ID!) {\n    node(id: $id) {\n      __typename\n      id\n      ... on BlogEntry {\n        title\n        body\n        published\n        creator {\n          id\n        }\n        ...EntryByline\n      }\n    }\n  }\n"): (typeof documents)["\n  query Entry($id: ID!) {\n    node(id: $id) {\n      __typename\n      id\n      ... on BlogEntry {\n        title\n        body\n        published\n        creator {\n          id\n        }\n        ...EntryByline\n      }\n    }\n  }\n"];
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  query Catalogue($filter: ProductFilter, $orderBy: ProductOrder!, $after: String) {\n    products(first: 24, after: $after, filter: $filter, orderBy: $orderBy) {\n      totalCount\n      edges {\n        cursor\n        node {\n          pk\n          ...ProductCard\n        }\n      }\n      pageInfo {\n        hasNextPage\n        endCursor\n      }\n    }\n  }\n"): (typeof documents)["\n  query Catalogue($filter: ProductFilter, $orderBy: ProductOrder!, $after: String) {\n    products(first: 24, after: $after, filter: $filter, orderBy: $orderBy) {\n      totalCount\n      edges {\n        cursor\n        node {\n          pk\n          ...ProductCard\n        }\n      }\n      pageInfo {\n        hasNextPage\n        endCursor\n      }\n    }\n  }\n"];
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  mutation CreateProduct($input: ProductInput!) {\n    createProduct(input: $input) {\n      id\n      pk\n      name\n    }\n  }\n"): (typeof documents)["\n  mutation CreateProduct($input: ProductInput!) {\n    createProduct(input: $input) {\n      id\n      pk\n      name\n    }\n  }\n"];
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  fragment ProductCard on Product {\n    id\n    pk\n    name\n    price\n  }\n"): (typeof documents)["\n  fragment ProductCard on Product {\n    id\n    pk\n    name\n    price\n  }\n"];
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  query Product($pk: ID!) {\n    product(pk: $pk) {\n      id\n      pk\n      name\n      price\n      barcode\n      createdAt\n      updatedAt\n    }\n  }\n"): (typeof documents)["\n  query Product($pk: ID!) {\n    product(pk: $pk) {\n      id\n      pk\n      name\n      price\n      barcode\n      createdAt\n      updatedAt\n    }\n  }\n"];
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  subscription ProductChanged($after: String) {\n    productChanged(kinds: [CHANGED, BULK], after: $after) {\n      cursor\n      product {\n        __typename\n        id\n        name\n        price\n        barcode\n        updatedAt\n      }\n    }\n  }\n"): (typeof documents)["\n  subscription ProductChanged($after: String) {\n    productChanged(kinds: [CHANGED, BULK], after: $after) {\n      cursor\n      product {\n        __typename\n        id\n        name\n        price\n        barcode\n        updatedAt\n      }\n    }\n  }\n"];
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  mutation ConfirmRegistration($input: ConfirmationInput!) {\n    confirmRegistration(input: $input) {\n      id\n      username\n    }\n  }\n"): (typeof documents)["\n  mutation ConfirmRegistration($input: ConfirmationInput!) {\n    confirmRegistration(input: $input) {\n      id\n      username\n    }\n  }\n"];
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  mutation ResetPassword($token: String!, $new: String!) {\n    resetPassword(token: $token, new: $new) {\n      id\n      username\n    }\n  }\n"): (typeof documents)["\n  mutation ResetPassword($token: String!, $new: String!) {\n    resetPassword(token: $token, new: $new) {\n      id\n      username\n    }\n  }\n"];
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  mutation Login($username: String!, $password: String!) {\n    login(username: $username, password: $password) {\n      accessToken\n      refreshToken\n      user {\n        id\n        ...Viewer\n      }\n    }\n  }\n"): (typeof documents)["\n  mutation Login($username: String!, $password: String!) {\n    login(username: $username, password: $password) {\n      accessToken\n      refreshToken\n      user {\n        id\n        ...Viewer\n      }\n    }\n  }\n"];
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  mutation Logout {\n    logout {\n      ended\n    }\n  }\n"): (typeof documents)["\n  mutation Logout {\n    logout {\n      ended\n    }\n  }\n"];
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  mutation Refresh($refreshToken: String!) {\n    refresh(refreshToken: $refreshToken) {\n      accessToken\n      refreshToken\n    }\n  }\n"): (typeof documents)["\n  mutation Refresh($refreshToken: String!) {\n    refresh(refreshToken: $refreshToken) {\n      accessToken\n      refreshToken\n    }\n  }\n"];
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  fragment Viewer on User {\n    id\n    username\n    fullName\n    scopes\n  }\n"): (typeof documents)["\n  fragment Viewer on User {\n    id\n    username\n    fullName\n    scopes\n  }\n"];
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  query Viewer {\n    me {\n      id\n      ...Viewer\n    }\n  }\n"): (typeof documents)["\n  query Viewer {\n    me {\n      id\n      ...Viewer\n    }\n  }\n"];

export function graphql(source: string) {
  return (documents as any)[source] ?? {};
}

export type DocumentType<TDocumentNode extends DocumentNode<any, any>> = TDocumentNode extends DocumentNode<  infer TType,  any>  ? TType  : never;