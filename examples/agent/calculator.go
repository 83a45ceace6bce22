package main

import (
	"context"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"strings"

	"github.com/pawlgo/pawl/dag"
)

// calculator reckons exactly: a model would guess.
func calculator() Tool {
	return Tool{
		Name:       "calculator",
		About:      "Reckons with numbers, + - * / and parentheses, exactly.",
		Inputs:     []Input{{"expression", "such as (3 + 4) * 2.5"}},
		Access:     dag.Reads,
		Confidence: 1,
		Use: func(_ context.Context, _ string, inputs map[string]string) (string, error) {
			return reckon(inputs["expression"])
		},
	}
}

const longestExpression = 200 // bytes

// reckon gives the value of an expression. It is written as in Go, whose parser reads it.
func reckon(expression string) (string, error) {
	if len(expression) > longestExpression {
		return "", refuse("the expression has %d bytes, the limit is %d", len(expression), longestExpression)
	}
	tree, err := parser.ParseExpr(expression)
	if err != nil {
		return "", refuse("%q is no expression", expression)
	}
	v, err := value(tree)
	if err != nil {
		return "", err
	}
	if i := constant.ToInt(v); i.Kind() == constant.Int {
		return i.ExactString(), nil
	}
	return v.String(), nil
}

func value(e ast.Expr) (constant.Value, error) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return value(e.X)
	case *ast.BasicLit:
		if strings.Trim(e.Value, "0123456789.") == "" { // neither 0x10 nor 1e999999999
			return constant.MakeFromLiteral(e.Value, token.FLOAT, 0), nil
		}
		return nil, refuse("%q is no number", e.Value)
	case *ast.UnaryExpr:
		x, err := value(e.X)
		if err != nil || e.Op != token.SUB && e.Op != token.ADD {
			return nil, orElse(err, "%q is no sign", e.Op)
		}
		return constant.UnaryOp(e.Op, x, 0), nil
	case *ast.BinaryExpr:
		x, err := value(e.X)
		if err != nil {
			return nil, err
		}
		y, err := value(e.Y)
		switch {
		case err != nil:
			return nil, err
		case e.Op != token.ADD && e.Op != token.SUB && e.Op != token.MUL && e.Op != token.QUO:
			return nil, refuse("the calculator knows + - * /, not %q", e.Op)
		case e.Op == token.QUO && constant.Sign(y) == 0:
			return nil, refuse("division by zero")
		}
		return constant.BinaryOp(x, e.Op, y), nil
	}
	return nil, refuse("the calculator knows numbers, + - * / and parentheses")
}

func orElse(err error, format string, args ...any) error {
	if err != nil {
		return err
	}
	return refuse(format, args...)
}
